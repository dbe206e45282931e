"""Scripts: what Redis does atomically.

A transaction (MULTI) would continue after a failed command, and Redis does not roll back a script either. A script
therefore checks everything that can be known before its first write, and takes back what it has added if a later
command fails. With ``#!lua`` Redis refuses a script as a whole where it is out of memory, read-only or short of
replicas.
"""

ACQUIRE = """#!lua
-- Take the lease if it is free or ours: {1, token}, else {0, holder}. Each new holder has a higher token.
local state, lease = KEYS[1], KEYS[2]
local me, milliseconds = ARGV[1], ARGV[2]
local holder = redis.call('GET', lease)
if holder and holder ~= me then return {0, holder} end
local token = redis.call('HINCRBY', state, 'token', 1)
redis.call('SET', lease, me, 'PX', milliseconds)
return {1, token}
"""

RELEASE = """#!lua
if redis.call('GET', KEYS[2]) == ARGV[1] then return redis.call('DEL', KEYS[2]) end
return 0
"""

_AS_HOLDER = """#!lua
local state, lease, source, target, side = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, milliseconds, token, step = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local found = redis.call('HMGET', state, 'token', 'step')
if found[1] ~= token then return redis.error_reply('FENCED lease') end
if (found[2] or '0') ~= step then return redis.error_reply('CHANGED state') end
"""

STAGE = (
    _AS_HOLDER
    + """
-- Keep a part of what is to be written beside the state, until the commit that writes it.
redis.call('HSET', state, ARGV[5], ARGV[6])
redis.call('SET', lease, me, 'PX', milliseconds)
"""
)

STEP = (
    _AS_HOLDER
    + """
-- Commit what was done, if anything, and return the entries after the last one, with the counts of the source.
local group, last, n_read, count, size = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local longest, target_length, side_length, trim_before = tonumber(ARGV[10]), ARGV[11], ARGV[12], ARGV[13]
for _, key in ipairs({source, target, side}) do
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'stream' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. kind) end
end
local needed = {
  {'HSET', state, 'step', '0'}, {'HGET', state, 'step'}, {'HDEL', state, 'step'},
  {'XADD', target, '*', 'data', ''}, {'XDEL', target, '0-1'}, {'XADD', side, '*', 'data', ''}, {'XDEL', side, '0-1'},
  {'XGROUP', 'SETID', source, group, last}, {'XGROUP', 'CREATE', source, group, last},
  {'XRANGE', source, '-', '+'}, {'XINFO', 'STREAM', source}, {'EXISTS', source},
  {'XREAD', 'STREAMS', source, '0'},  -- which the worker waits with, between its steps
  {'SET', lease, me}, {'GET', lease}, {'DEL', lease},
}
if target_length ~= '' then needed[#needed + 1] = {'XTRIM', target, 'MAXLEN', '0'} end
if side_length ~= '' then needed[#needed + 1] = {'XTRIM', side, 'MAXLEN', '0'} end
if trim_before ~= '' then
  needed[#needed + 1] = {'XTRIM', source, 'MINID', '0'}
  needed[#needed + 1] = {'XINFO', 'GROUPS', source}
end
for _, command in ipairs(needed) do
  local is_known, is_allowed = pcall(redis.acl_check_cmd, unpack(command))
  if not is_known then return redis.error_reply('ERR unknown command ' .. command[1]) end
  if not is_allowed then
    return redis.error_reply('NOPERM ' .. table.concat(command, ' ', 1, math.min(3, #command)))
  end
end

local call, find, sub = redis.call, string.find, string.sub

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

-- Commands that may fail. After a failure no more are tried; `added` holds the entries of each stream until then.
local added, failure, pcall = {[target] = {}, [side] = {}}, nil, redis.pcall
local function attempt(command, key, ...)
  if failure then return nil end
  local answer = pcall(command, key, ...)
  if type(answer) ~= 'table' then return answer end
  failure = redis.error_reply('REFUSED ' .. command .. ' ' .. key .. ': ' .. answer.err)
end
local function add(key, ...)
  local ids = added[key]
  ids[#ids + 1] = attempt('XADD', key, '*', ...)
end
local function release(text)
  for line in lines_of(text) do add(target, 'data', line) end
end
local function set_aside(text)
  for line in lines_of(text) do
    local reason, id, data = string.match(line, '^(%S+) (%S+) (.*)$')
    add(side, 'reason', reason, 'id', id, 'data', data)
  end
end

if #ARGV > 13 then
  local n_released, n_aside, released, aside = ARGV[14], ARGV[15], ARGV[16], ARGV[17]
  local n_changed = tonumber(ARGV[18])
  for i = 1, n_released do release(call('HGET', state, 'released:' .. i)) end
  release(released)
  for i = 1, n_aside do set_aside(call('HGET', state, 'aside:' .. i)) end
  set_aside(aside)
  attempt('HSET', state, 'step', step + 1, unpack(ARGV, 19, 18 + n_changed))
  if failure then
    for key, ids in pairs(added) do
      for _, id in ipairs(ids) do call('XDEL', key, id) end
    end
    return failure
  end
  -- From here on it is committed; what follows only tidies up.
  for i = 19 + n_changed, #ARGV do call('HDEL', state, ARGV[i]) end
  if target_length ~= '' then call('XTRIM', target, 'MAXLEN', '~', target_length, 'LIMIT', 0) end
  if side_length ~= '' then call('XTRIM', side, 'MAXLEN', '~', side_length, 'LIMIT', 0) end
  -- The group shows how far the worker is. If it was removed, it is created again.
  local moved = redis.pcall('XGROUP', 'SETID', source, group, last, 'ENTRIESREAD', n_read)
  if moved.err then redis.pcall('XGROUP', 'CREATE', source, group, last, 'MKSTREAM', 'ENTRIESREAD', n_read) end
  if trim_before ~= '' and #call('XINFO', 'GROUPS', source) == 1 then
    call('XTRIM', source, 'MINID', trim_before)
  end
end
call('SET', lease, me, 'PX', milliseconds)

-- A few entries at a time, fewer where one was large, since Redis copies all that it is asked for.
local ids, lines, after, left, largest, at_end = {}, {}, last, size, size, 0
while left > 0 and #ids < count and at_end == 0 do
  local n = math.min(count - #ids, math.max(1, math.min(16, math.floor(left / largest))))
  local entries = call('XRANGE', source, '(' .. after, '+', 'COUNT', n)
  if #entries < n then at_end = 1 end
  if #ids == 0 then largest = 1 end
  for _, entry in ipairs(entries) do
    local fields, line = entry[2], ''
    for j = 1, #fields, 2 do if fields[j] == 'data' then line = fields[j + 1] end end
    if #line > longest then line = '?too long' end
    left, largest = left - #line, math.max(largest, #line)
    -- One entry becomes one line: outside of JSON strings CR means the same as LF; within them both are forbidden.
    if find(line, '\\n', 1, true) then line = string.gsub(line, '\\n', '\\r') end
    if not find(line, '%S') then line = '?' end
    after = entry[1]
    ids[#ids + 1], lines[#lines + 1] = after, line
  end
end
local about = call('EXISTS', source) == 1 and call('XINFO', 'STREAM', source) or {}
local n_added, length, first, newest = 0, 0, '', ''
for i = 1, #about, 2 do
  if about[i] == 'entries-added' then n_added = about[i + 1]
  elseif about[i] == 'length' then length = about[i + 1]
  elseif about[i] == 'last-generated-id' then newest = about[i + 1]
  elseif about[i] == 'first-entry' and about[i + 1] then first = about[i + 1][1] end
end
return {n_added, length, first, newest, at_end, table.concat(ids, '\\n'), table.concat(lines, '\\n')}
"""
)
