// python.exe: all it does is in python311.dll.
__declspec(dllimport) int Py_Main(int, unsigned short **);
int wmain(int argc, unsigned short **argv) { return Py_Main(argc, argv); }
