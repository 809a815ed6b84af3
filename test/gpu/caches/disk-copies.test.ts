import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDiskCopies, type RestoreOptions } from '../../../gpu/caches/disk-copies.ts'
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
const rules = {
  within: async (_bytes: number, work: () => Promise<void>) => {
    await work()
    return 'done' as const
  },
  maxAgeMs: 3_600_000,
}

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
    let left = 1_500
    const within: RestoreOptions['within'] = async (bytes, work) => {
      if (bytes > left) return 'too much'
      left -= bytes
      await work()
      return 'done'
    }
    const disk = open()
    expect(await disk.restore(memory, { ...rules, within })).toBe(1)
    expect(filesIn(memory)).toEqual(['model/ann/2.state'])
    expect(disk.waiting()).toBe(0)
  })

  const noSpace = Object.assign(new Error('no space left on device'), { code: 'ENOSPC', syscall: 'write' })
  test.each<[string, RestoreOptions['within']]>([
    ['the memory has no space for them', async () => 'no space'],
    ['the memory is full while they are written', () => Promise.reject(noSpace)],
  ])('are kept if %s, and restored later', async (_how, within) => {
    const { memory, write, saved, open, filesIn, loseMemory, copies } = setup()
    write('model/ann/1.state', 'one')
    write('model/ben/2.state', 'two')
    await open().sync(memory, saved())
    loseMemory()
    const disk = open()
    expect(await disk.restore(memory, { ...rules, within })).toBe(0)
    expect(disk.waiting()).toBe(2)
    write('model/eve/3.state', 'three')
    await disk.sync(memory, saved())
    expect(filesIn(join(copies, 'copies'))).toHaveLength(3)
    expect(await disk.restore(memory, rules)).toBe(2)
    expect(filesIn(memory)).toHaveLength(3)
    expect(disk.waiting()).toBe(0)
  })

  test('are restored in steps, which a stop ends without a loss', async () => {
    const { memory, write, saved, open, filesIn, loseMemory, copies } = setup()
    for (const name of ['1', '2', '3']) write(`model/ann/${name}.state`, name)
    await open().sync(memory, saved())
    loseMemory()
    const disk = open()
    let closed: Promise<void> | undefined
    let begun = 0
    const within: RestoreOptions['within'] = async (_bytes, work) => {
      if (++begun === 2) closed = disk.close()
      await work()
      return 'done'
    }
    expect(await disk.restore(memory, { ...rules, within })).toBe(1)
    await closed
    expect(filesIn(memory)).toHaveLength(1)
    expect(filesIn(join(copies, 'copies'))).toHaveLength(3)
  })

  test('are not written again once they were all deleted', async () => {
    const { memory, write, saved, open, filesIn, copies } = setup()
    for (const name of ['1', '2', '3']) write(`model/ann/${name}.state`, name)
    const disk = open()
    const syncing = disk.sync(memory, saved())
    await disk.clear()
    await syncing
    expect(() => filesIn(copies)).toThrow('ENOENT')
    await disk.sync(memory, saved())
    expect(filesIn(join(copies, 'copies'))).toHaveLength(3)
  })

  test('neither copy nor write through a link that an engine has put in the place of a folder', async () => {
    const { memory, write, saved, open, filesIn, copies } = setup()
    const elsewhere = temporary()
    write('model/ann/1.state', 'one')
    const list = saved()
    const swap = () => {
      rmSync(join(memory, 'model/ann'), { recursive: true })
      symlinkSync(elsewhere, join(memory, 'model/ann'))
    }
    const disk = open()
    await disk.sync(memory, list)
    swap()
    expect(await disk.restore(memory, rules)).toBe(0)
    expect(readdirSync(elsewhere)).toEqual([])
    writeFileSync(join(elsewhere, '1.state'), 'a secret')
    await disk.clear()
    await disk.sync(memory, list)
    expect(filesIn(join(copies))).not.toContain('copies/model/ann/1.state.sealed')
  })
})
