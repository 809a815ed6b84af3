import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { insidePath, layoutOf } from '../../../../core/models/hub/layout.ts'
import { parseHubReference } from '../../../../core/models/hub/reference.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'

const hub = 'https://huggingface.co'

test.each([
  ['hf:a/b', { repository: 'a/b', revision: 'main', file: null }],
  ['hf:gpt2', { repository: 'gpt2', revision: 'main', file: null }],
  ['hf:a/b:c-Q4_K_M.gguf', { repository: 'a/b', revision: 'main', file: 'c-Q4_K_M.gguf' }],
  ['hf:a/b:sub/c.gguf', { repository: 'a/b', revision: 'main', file: 'sub/c.gguf' }],
  ['hf:a/b@v1.0:c.gguf', { repository: 'a/b', revision: 'v1.0', file: 'c.gguf' }],
  ['https://huggingface.co/a/b', { repository: 'a/b', revision: 'main', file: null }],
  ['https://hf.co/a/b/tree/dev', { repository: 'a/b', revision: 'dev', file: null }],
  [
    'https://huggingface.co/a/b/resolve/main/s/c%20d.gguf?download=true',
    { repository: 'a/b', revision: 'main', file: 's/c d.gguf' },
  ],
  ['https://huggingface.co/a/b/blob/v2/c.gguf', { repository: 'a/b', revision: 'v2', file: 'c.gguf' }],
])('%s is parsed', (text, reference) => {
  expect(parseHubReference(text, hub)).toEqual(reference)
})

test('addresses of a mirror are parsed by its endpoint; other addresses and paths are refused', () => {
  expect(parseHubReference('http://mirror:80/hub/a/b/resolve/main/c.gguf', 'http://mirror/hub')).toEqual({
    repository: 'a/b',
    revision: 'main',
    file: 'c.gguf',
  })
  for (const text of ['https://example.com/a/b/resolve/main/c.gguf', '/models/a.gguf', 'a/b', 'C:a'])
    expect(parseHubReference(text, hub)).toBeUndefined()
})

test.each([
  'hf:',
  'hf:a/b/c',
  'hf:../b',
  'hf:a/..',
  'hf:a--b/c',
  'hf:a/b:',
  'hf:a/b@:c',
  'hf:a/b@../../x:c',
  'hf:a b/c',
  'hf:-a/b',
  'http://[',
  'https://huggingface.co/datasets/a/b',
  'https://huggingface.co/a',
  'https://huggingface.co/a/b/discussions/1',
  'https://huggingface.co/a%2f..%2f..%2fb/c',
])('%s is refused', text => {
  expect(() => parseHubReference(text, hub)).toThrow(/Write it as hf:owner\/name/)
})

test.each([
  '',
  '/etc/passwd',
  '../x',
  'a/../../x',
  'a//b',
  './a',
  'a/.',
  'a\\..\\b',
  'a\u0000b',
  'a\nb',
  'x'.repeat(256),
])('the file name %j never reaches the disk', path => {
  expect(() => insidePath(path, 'o/n')).toThrow(/Nothing was downloaded/)
})

test('unusual but valid names are accepted', () => {
  for (const path of ['a b.gguf', '..a/b..', 'é/ü.gguf', '.hidden']) expect(insidePath(path, 'o/n')).toBe(path)
})

test('the cache has the layout that the tools of the hub expect', () => {
  const layout = layoutOf('/c', 'a/b')
  expect(layout.blob('h')).toBe('/c/models--a--b/blobs/h')
  expect(layout.lock('h')).toBe('/c/.locks/models--a--b/h.lock')
  expect(layout.file('1f', 'x/y.gguf')).toBe('/c/models--a--b/snapshots/1f/x/y.gguf')
  expect(layout.link('y.gguf', 'h')).toBe('../../blobs/h')
  expect(layout.link('x/y.gguf', 'h')).toBe('../../../blobs/h')
  expect(layout.ref('main')).toBe('/c/models--a--b/refs/main')
})

test('the environment sets the endpoint, the cache and the token', () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-hf-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'token'), 'saved\n')
  writeFileSync(join(folder, 'two'), 'one\ntwo\n')
  expect(hubSettings({})).toMatchObject({
    endpoint: hub,
    cache: join(homedir(), '.cache/huggingface/hub'),
    offline: false,
  })
  expect(hubSettings({ XDG_CACHE_HOME: '/x' }).cache).toBe('/x/huggingface/hub')
  expect(hubSettings({ HF_HOME: folder, HF_ENDPOINT: 'http://h:1/' })).toEqual({
    endpoint: 'http://h:1',
    cache: join(folder, 'hub'),
    token: 'saved',
    offline: false,
  })
  expect(hubSettings({ HF_HOME: folder, HF_HUB_CACHE: '~/c', HF_TOKEN: 'mine', HF_HUB_OFFLINE: '1' })).toMatchObject({
    cache: join(homedir(), 'c'),
    token: 'mine',
    offline: true,
  })
  expect(hubSettings({ HF_TOKEN: 'mine' }, { tokenFile: join(folder, 'token') }).token).toBe('saved')
  expect(hubSettings({ HF_HOME: folder, HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' }).token).toBeUndefined()
  expect(() => hubSettings({ HF_ENDPOINT: 'ftp://h' })).toThrow(/HF_ENDPOINT must be an address/)
  expect(() => hubSettings({ HF_ENDPOINT: 'https://me:hunter2@h' })).toThrow(
    /^HF_ENDPOINT contains a user name(?!.*hunter2)/,
  )
  expect(() => hubSettings({ HF_ENDPOINT: 'me:hunter2@h' })).toThrow(/^HF_ENDPOINT must be an address(?!.*hunter2)/)
  expect(() => hubSettings({}, { tokenFile: join(folder, 'none') })).toThrow(/cannot be read/)
  expect(() => hubSettings({ HF_TOKEN: 'a b' })).toThrow(/HF_TOKEN must contain one token/)
  expect(() => hubSettings({}, { tokenFile: join(folder, 'two') })).toThrow(/one token/)
})
