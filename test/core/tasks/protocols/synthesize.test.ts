import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, test } from 'vitest'
import { AbortSource } from '../../../../core/abort-source.ts'
import { audioFailure } from '../../../../core/tasks/protocols/openai-audio.ts'

test.each([
  ['ENOSPC', 'disk_full'],
  ['EDQUOT', 'disk_full'],
  ['EIO', 'internal_error'],
])('audio that breaks off with %s is %s', (code, expected) => {
  expect(audioFailure(Object.assign(new Error('write'), { code }), new AbortSource()).code).toBe(expected)
})

test('a disconnected caller gets that reason, whatever failed then', () => {
  const gone = new AbortSource()
  gone.abort(new Error('left'))
  expect(audioFailure(Object.assign(new Error('write'), { code: 'ENOSPC' }), gone)).toMatchObject({
    cause: { message: 'left' },
  })
})

test.runIf(process.getuid?.() === 0)('audio written to a full disk breaks off with that error', async context => {
  const disk = mkdtempSync(join(tmpdir(), 'infer-disk-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status === 0
  try {
    if (!mounted) return context.skip()
    const sound = Readable.from(Array.from({ length: 32 }, () => Buffer.alloc(16 << 10)))
    const thrown: unknown = await pipeline(sound, createWriteStream(join(disk, 'x'), { flags: 'wx' })).catch(
      (cause: unknown) => cause,
    )
    expect(audioFailure(thrown, new AbortSource())).toMatchObject({ code: 'disk_full' })
  } finally {
    if (mounted) spawnSync('umount', ['-l', disk])
    rmdirSync(disk)
  }
})
