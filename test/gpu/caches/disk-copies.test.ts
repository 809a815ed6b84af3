import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDiskCopies } from '../../../gpu/caches/disk-copies.ts'
import { seal, unseal } from '../../../gpu/caches/sealed-file.ts'
import { keptLog, temporary } from '../launcher/_launch.ts'

const keyOf = (byte: number) => createSecretKey(Buffer.alloc(32, byte))
const key = keyOf(1)
const piece = 256 << 10

describe('a sealed file', () => {
  test.each([0, 1, piece - 1, piece, piece + 1, 3 * piece])(
    'of %i bytes has the same content when it is opened',
    async bytes => {
      const folder = temporary()
      const [from, to, back] = ['from', 'to', 'back'].map(name => join(folder, name)) as [string, string, string]
      const content = randomBytes(bytes)
      writeFileSync(from, content)
      utimesSync(from, 1_000, 2_000)
      await seal({ from, to, key, name: 'one' })
      expect(statSync(to).mode & 0o777).toBe(0o600)
      if (bytes > 16) expect(readFileSync(to).includes(content.subarray(0, 16))).toBe(false)
      await unseal({ from: to, to: back, key, name: 'one' })
      expect(readFileSync(back).equals(content)).toBe(true)
      expect(statSync(back).mtimeMs).toBe(2_000_000)
    },
  )

  const changes: [what: string, change: (bytes: Buffer) => Buffer][] = [
    ['a byte is changed', bytes => bytes.fill(bytes[20]! ^ 1, 20, 21)],
    ['the last piece is missing', bytes => bytes.subarray(0, 16 + piece + 16)],
    ['the end is missing', bytes => bytes.subarray(0, -1)],
    ['only the salt is left', bytes => bytes.subarray(0, 16)],
    [
      'two pieces are exchanged',
      bytes => {
        const [one, two] = [16, 16 + piece + 16].map(at => bytes.subarray(at, at + piece + 16)) as [Buffer, Buffer]
        return Buffer.concat([bytes.subarray(0, 16), two, one, bytes.subarray(16 + 2 * (piece + 16))])
      },
    ],
    ['something is added', bytes => Buffer.concat([bytes, Buffer.alloc(32)])],
  ]
  test.each(changes)('is refused when %s', async (_what, change) => {
    const folder = temporary()
    const [from, to, back] = ['from', 'to', 'back'].map(name => join(folder, name)) as [string, string, string]
    writeFileSync(from, randomBytes(2 * piece + 100))
    await seal({ from, to, key, name: 'one' })
    writeFileSync(to, change(readFileSync(to)))
    await expect(unseal({ from: to, to: back, key, name: 'one' })).rejects.toThrow()
    expect(readdirSync(folder).toSorted()).toEqual(['from', 'to'])
  })

  test('is refused with another key and under another name', async () => {
    const folder = temporary()
    const [from, to, back] = ['from', 'to', 'back'].map(name => join(folder, name)) as [string, string, string]
    writeFileSync(from, 'secret')
    await seal({ from, to, key, name: 'one' })
    await expect(unseal({ from: to, to: back, key: keyOf(2), name: 'one' })).rejects.toThrow()
    await expect(unseal({ from: to, to: back, key, name: 'two' })).rejects.toThrow()
  })
})

/** Conversations in memory, and the copies of a data directory. */
function setup() {
  const [memory, dataDir] = [temporary(), temporary()]
  const log = keptLog()
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(memory, name)), { recursive: true })
    writeFileSync(join(memory, name), text)
  }
  const filesIn = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => relative(folder, join(entry.parentPath, entry.name)))
      .toSorted()
  const saved = () =>
    filesIn(memory).map(name => {
      const path = join(memory, name)
      const { size, mtimeMs } = statSync(path)
      return { path, owner: name.split('/')[1]!, bytes: size, usedAt: mtimeMs }
    })
  const open = () => openDiskCopies({ dataDir, key, log })
  const loseMemory = () => rmSync(memory, { recursive: true })
  const everything = () => filesIn(dataDir).map(name => readFileSync(join(dataDir, name)).toString('latin1'))
  return {
    memory,
    dataDir,
    write,
    filesIn,
    saved,
    open,
    loseMemory,
    everything,
    copies: join(dataDir, 'conversations'),
  }
}
const rules = { maxBytes: 1e6, maxAgeMs: 3_600_000 }

describe('copies on disk', () => {
  test('bring back what was in memory, for a new server, and contain none of its text', async () => {
    const { memory, write, saved, open, filesIn, loseMemory, everything } = setup()
    write('model/ann/1.state', 'the words of Ann')
    write('model/ben/2.state', 'the words of Ben')
    await open().sync(memory, saved())
    expect(everything()).toHaveLength(4)
    expect(everything().join()).not.toContain('words')
    loseMemory()
    expect(await open().restore(memory, rules)).toBe(2)
    expect(filesIn(memory)).toEqual(['model/ann/1.state', 'model/ben/2.state'])
    expect(readFileSync(join(memory, 'model/ann/1.state'), 'utf8')).toBe('the words of Ann')
  })

  test('are deleted with what they copy', async () => {
    const { memory, write, saved, open, filesIn, copies } = setup()
    write('model/ann/1.state', 'one')
    const disk = open()
    await disk.sync(memory, saved())
    rmSync(join(memory, 'model/ann/1.state'))
    write('model/ann/2.state', 'two')
    await disk.sync(memory, saved())
    expect(filesIn(join(copies, 'copies'))).toEqual(['model/ann/2.state.sealed'])
  })

  test('of a deleted organization are gone with its key, and none is made any more', async () => {
    const { memory, write, saved, open, filesIn, copies } = setup()
    write('model/ann/1.state', 'one')
    write('model/ben/2.state', 'two')
    const disk = open()
    await disk.sync(memory, saved())
    await disk.forget('ann')
    expect(filesIn(copies)).toEqual(['copies/model/ben/2.state.sealed', 'salts/ben'])
    await disk.sync(memory, saved())
    expect(filesIn(copies)).toEqual(['copies/model/ben/2.state.sealed', 'salts/ben'])
    await disk.clear()
    expect(() => filesIn(copies)).toThrow('ENOENT')
  })

  test('without the key of their organization cannot be read, and are deleted', async () => {
    const { memory, write, saved, open, filesIn, loseMemory, copies } = setup()
    write('model/ann/1.state', 'one')
    await open().sync(memory, saved())
    loseMemory()
    rmSync(join(copies, 'salts/ann'))
    expect(await open().restore(memory, rules)).toBe(0)
    expect(filesIn(copies)).toEqual([])
  })

  test('come back newest first, as many as there is room for, and none that is too old', async () => {
    const { memory, write, saved, open, filesIn, loseMemory } = setup()
    const used = (name: string, secondsAgo: number) => {
      write(`model/ann/${name}`, 'x'.repeat(1_000))
      utimesSync(join(memory, 'model/ann', name), new Date(), new Date(Date.now() - secondsAgo * 1_000))
    }
    used('1.state', 30)
    used('2.state', 10)
    used('3.state', 4_000)
    await open().sync(memory, saved())
    loseMemory()
    expect(await open().restore(memory, { maxBytes: 1_500, maxAgeMs: 3_600_000 })).toBe(1)
    expect(filesIn(memory)).toEqual(['model/ann/2.state'])
  })
})
