import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { serverIdIn } from '../../gpu/server-id.ts'
import { keptLog, temporary } from './launcher/_launch.ts'

test('a data directory keeps its id, also where it is moved; a copy gets one of its own, and keeps that', () => {
  const log = keptLog()
  const [parent, dataDir] = [temporary(), temporary()]
  const id = serverIdIn(dataDir, log)
  expect(readFileSync(join(dataDir, 'server-id'), 'utf8')).toBe(`${id}\n`)
  expect(serverIdIn(dataDir, log)).toBe(id)

  const copy = join(parent, 'copy')
  cpSync(dataDir, copy, { recursive: true, preserveTimestamps: true })
  expect(log.lines).toEqual([])
  const own = serverIdIn(copy, log)
  expect(own).not.toBe(id)
  expect(log.lines).toEqual([expect.stringContaining('This data directory is a copy')])
  expect([serverIdIn(copy, log), serverIdIn(dataDir, log)]).toEqual([own, id])

  const moved = join(parent, 'moved')
  renameSync(copy, moved)
  expect(serverIdIn(moved, log)).toBe(own)
  expect(log.lines).toHaveLength(1)
})

test('an id that was made before copies were noticed stays', () => {
  const dataDir = temporary()
  writeFileSync(join(dataDir, 'server-id'), '01hxbefore\n')
  expect(serverIdIn(dataDir, keptLog())).toBe('01hxbefore')
  expect(readFileSync(join(dataDir, 'server-id.inode'), 'utf8')).toMatch(/^\d+\n$/)
})
