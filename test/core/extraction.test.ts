import { hash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cacheDirectory, extractFile, extractTree, type FileContent, type TreeFile } from '../../core/extraction.ts'

const contentOf = (bytes: Uint8Array): FileContent => ({
  size: bytes.length,
  read: (into, at) => into.set(bytes.subarray(at, at + into.length)),
})

let cache: string
let folder: string
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'infer-extraction-'))
  folder = join(cache, '1.0.0-0123456789abcdef')
})
afterEach(() => rmSync(cache, { recursive: true, force: true }))

test.each([
  [{ INFER_CACHE_DIR: '/a/b' }, '/a/b'],
  [{ INFER_CACHE_DIR: '/a/b', XDG_CACHE_HOME: '/x' }, '/a/b'],
  [{ XDG_CACHE_HOME: '/x' }, '/x/infer'],
  [{ XDG_CACHE_HOME: 'x' }, join(homedir(), '.cache/infer')],
  [{ INFER_CACHE_DIR: '' }, join(homedir(), '.cache/infer')],
  [{}, join(homedir(), '.cache/infer')],
])('with %j the cache is %s', (env, expected) => {
  expect(cacheDirectory(env)).toBe(expected)
})

test('a relative cache directory is refused', () => {
  expect(() => cacheDirectory({ INFER_CACHE_DIR: 'cache' })).toThrow(/INFER_CACHE_DIR is 'cache'.*absolute/)
})

describe('a file', () => {
  const content = Buffer.from('the original')

  test('is written once, for its owner only, and not rewritten while it is right', () => {
    const path = extractFile(folder, 'deep/addon.node', contentOf(content))
    const before = statSync(path)
    expect(extractFile(folder, 'deep/addon.node', contentOf(content))).toBe(path)
    expect(statSync(path).ino).toBe(before.ino)
    expect(before.mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(readdirSync(join(folder, 'deep'))).toEqual(['addon.node'])
  })

  test.each<[string, (path: string) => void]>([
    ['other bytes of the same length', path => writeFileSync(path, 'the_original')],
    ['bytes behind its end', path => writeFileSync(path, 'the original!')],
    ['nothing in it', path => writeFileSync(path, '')],
    [
      'a link to the right bytes',
      path => {
        writeFileSync(join(cache, 'elsewhere'), content)
        rmSync(path)
        symlinkSync(join(cache, 'elsewhere'), path)
      },
    ],
  ])('is replaced when it has %s', (_, tamper) => {
    const path = extractFile(folder, 'addon.node', contentOf(content))
    tamper(path)
    extractFile(folder, 'addon.node', contentOf(content))
    expect(readFileSync(path, 'utf8')).toBe('the original')
    expect(statSync(path, {}).isFile() && readdirSync(folder)).toEqual(['addon.node'])
  })

  test('is not written where others could change it', () => {
    mkdirSync(folder)
    chmodSync(folder, 0o777)
    expect(() => extractFile(folder, 'addon.node', contentOf(content))).toThrow(
      /^The cache directory .* cannot be used \(others can write to .*\); set INFER_CACHE_DIR to/,
    )
  })

  test.each([
    ['a file is in the way', () => writeFileSync(folder, '')],
    ['a link is in the way', () => symlinkSync(tmpdir(), folder)],
  ])('is not written where %s', (_, prepare) => {
    prepare()
    expect(() => extractFile(folder, 'addon.node', contentOf(content))).toThrow(
      /is not a folder\); set INFER_CACHE_DIR/,
    )
  })

  test('is not written below /proc, and the attempt ends', () => {
    expect(() => extractFile('/proc/infer/cache/1-0123456789abcdef', 'addon.node', contentOf(content))).toThrow(
      /^The cache directory \/proc\/infer\/cache cannot be used \(ENOENT/,
    )
  })

  test('removes old builds: the newest ones stay, older ones and old leftovers are deleted, foreign files are kept', () => {
    const long = new Date(Date.now() - 86_400_000)
    for (const [at, name] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      const build = join(cache, `1.0.0-${name.repeat(16)}`)
      mkdirSync(build)
      utimesSync(build, new Date(2026, 1, at + 1), new Date(2026, 1, at + 1))
    }
    mkdirSync(join(cache, 'photos'))
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(join(folder, 'old.tmp'), '')
    utimesSync(join(folder, 'old.tmp'), long, long)
    writeFileSync(join(folder, 'young.tmp'), '')
    extractFile(folder, 'addon.node', contentOf(content))
    expect(readdirSync(cache).sort()).toEqual(
      ['1.0.0-0123456789abcdef', ...['c', 'd', 'e'].map(name => `1.0.0-${name.repeat(16)}`), 'photos'].sort(),
    )
    expect(readdirSync(folder).sort()).toEqual(['addon.node', 'young.tmp'])
  })
})

describe('a tree', () => {
  const parts = { 'package.json': '{}', 'dist/index.js': 'export {}', 'bins/llama.so': 'native' }
  const files: TreeFile[] = Object.entries(parts).map(([path, text]) => ({
    path,
    size: text.length,
    sha256: hash('sha256', text),
  }))
  const contents = Buffer.from(Object.values(parts).join(''))
  let unpacked = 0
  const place = () =>
    extractTree(folder, 'vendor', files, () => {
      unpacked++
      return contents
    })
  beforeEach(() => {
    unpacked = 0
  })

  const expectWhole = (path: string) => {
    for (const [name, text] of Object.entries(parts)) expect(readFileSync(join(path, name), 'utf8')).toBe(text)
    expect(new Set<unknown>(readdirSync(path, { recursive: true }))).toEqual(
      new Set(['bins', 'dist', ...Object.keys(parts)]),
    )
    expect(readdirSync(folder)).toEqual(['vendor'])
  }

  test('is unpacked once and not rewritten while it is right', () => {
    expectWhole(place())
    expect(place()).toBe(join(folder, 'vendor'))
    expect(unpacked).toBe(1)
  })

  test.each<[string, (path: string) => void]>([
    ['one byte differs', path => writeFileSync(join(path, 'bins/llama.so'), 'nativE')],
    ['a file is missing', path => rmSync(join(path, 'dist/index.js'))],
    ['there is a file too many', path => writeFileSync(join(path, 'dist/node_modules.js'), '')],
    [
      'there is a package too many',
      path => {
        mkdirSync(join(path, 'dist/node_modules/evil'), { recursive: true })
        writeFileSync(join(path, 'dist/node_modules/evil/index.js'), '')
      },
    ],
    [
      'a file is a link',
      path => {
        writeFileSync(join(cache, 'elsewhere'), 'native')
        rmSync(join(path, 'bins/llama.so'))
        symlinkSync(join(cache, 'elsewhere'), join(path, 'bins/llama.so'))
      },
    ],
    [
      'a folder is a link',
      path => {
        mkdirSync(join(cache, 'bins'))
        writeFileSync(join(cache, 'bins/llama.so'), 'native')
        rmSync(join(path, 'bins'), { recursive: true })
        symlinkSync(join(cache, 'bins'), join(path, 'bins'))
      },
    ],
    [
      'it is a file itself',
      path => {
        rmSync(path, { recursive: true })
        writeFileSync(path, '')
      },
    ],
  ])('is replaced as a whole when %s', (_, tamper) => {
    tamper(place())
    expectWhole(place())
    expect(unpacked).toBe(2)
  })

  test('that is always wrong is refused instead of unpacked for ever', () => {
    const wrong = [{ path: 'index.js', size: 1, sha256: 'no such hash' }]
    expect(() => extractTree(folder, 'vendor', wrong, () => Buffer.from('x'))).toThrow(/its files change/)
    expect(existsSync(join(cache, 'elsewhere'))).toBe(false)
  })
})
