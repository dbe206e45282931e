"""Scripts: what Redis does atomically.

A transaction (MULTI) would continue after a failed command; a script checks everything first. With ``#!lua`` Redis
refuses a script as a whole where it is out of memory, read-only or short of replicas.
"""

ACQUIRE = """#!lua
-- Take the lease if it is free or ours: {1, token}, else {0, holder}. Each new holder has a higher token.
local state, lease = KEYS[1], KEYS[2]
local me, milliseconds = ARGV[1], ARGV[2]
local holder = redis.call('GET', lease)
if holder and holder ~= me then return {0, holder} end
redis.call('SET', lease, me, 'PX', milliseconds)
return {1, redis.call('HINCRBY', state, 'token', 1)}
"""

RELEASE = """#!lua
if redis.call('GET', KEYS[2]) == ARGV[1] then return redis.call('DEL', KEYS[2]) end
return 0
"""

STEP = """#!lua
-- Commit what was done, if anything, and return the entries after the last one, with the counts of the source.
local state, lease, source, target, side = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, milliseconds, token, step = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local group, last, n_read, count = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local found = redis.call('HMGET', state, 'token', 'step')
if found[1] ~= token then return redis.error_reply('FENCED lease') end
if (found[2] or '0') ~= step then return redis.error_reply('CHANGED state') end
for _, key in ipairs({source, target, side}) do
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'stream' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. kind) end
end

local call, find, sub = redis.call, string.find, string.sub
local function add(key, length, ...)
  if length == '' then call('XADD', key, '*', ...)
  else call('XADD', key, 'MAXLEN', '~', length, '*', ...) end
end

-- The lines of a text, one by one. Searching for a plain text is several times as fast as matching a pattern.
local function lines_of(text)
  local from = 1
  return function()
    local to = find(text, '\\n', from, true)
    if not to then return nil end
    local line = sub(text, from, to - 1)
    from = to + 1
    return line
  end
end

if #ARGV > 8 then
  local released, aside, target_length, side_length, trim_before = ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13]
  local n_changed = tonumber(ARGV[14])
  redis.call('HSET', state, 'step', step + 1, unpack(ARGV, 15, 14 + n_changed))
  for i = 15 + n_changed, #ARGV do redis.call('HDEL', state, ARGV[i]) end
  for line in lines_of(released) do add(target, target_length, 'data', line) end
  local next_line = lines_of(aside)
  for reason in next_line do add(side, side_length, 'reason', reason, 'id', next_line(), 'data', next_line()) end
  -- The group shows how far the worker is. If it was removed, it is created again.
  local moved = redis.pcall('XGROUP', 'SETID', source, group, last, 'ENTRIESREAD', n_read)
  if moved.err then redis.pcall('XGROUP', 'CREATE', source, group, last, 'MKSTREAM', 'ENTRIESREAD', n_read) end
  if trim_before ~= '' and #redis.call('XINFO', 'GROUPS', source) == 1 then
    redis.call('XTRIM', source, 'MINID', trim_before)
  end
end
redis.call('SET', lease, me, 'PX', milliseconds)

local ids, lines = {}, {}
for i, entry in ipairs(call('XRANGE', source, '(' .. last, '+', 'COUNT', count)) do
  local fields, line = entry[2], ''
  for j = 1, #fields, 2 do if fields[j] == 'data' then line = fields[j + 1] end end
  -- One entry becomes one line: outside of JSON strings CR means the same as LF; within them both are forbidden.
  if find(line, '\\n', 1, true) then line = string.gsub(line, '\\n', '\\r') end
  if not find(line, '%S') then line = '?' end
  ids[i], lines[i] = entry[1], line
end
local about = redis.call('EXISTS', source) == 1 and redis.call('XINFO', 'STREAM', source) or {}
local added, length, first = 0, 0, ''
for i = 1, #about, 2 do
  if about[i] == 'entries-added' then added = about[i + 1]
  elseif about[i] == 'length' then length = about[i + 1]
  elseif about[i] == 'first-entry' and about[i + 1] then first = about[i + 1][1] end
end
return {added, length, first, table.concat(ids, '\\n'), table.concat(lines, '\\n')}
"""
