// bcryptprimitives.dll: modules in Rust (pydantic-core, polars, calamine) take random numbers from it; Wine 8 has none.
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T n) {
    while (n > 0) {
        ULONG now = n > 1048576 ? 1048576 : (ULONG)n;
        if (!SystemFunction036(data, now)) return FALSE;
        data += now;
        n -= now;
    }
    return TRUE;
}
