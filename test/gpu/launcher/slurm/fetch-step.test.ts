import { expect, test } from 'vitest'
import { behindFetch, fetchEnvironment } from '../../../../gpu/launcher/slurm/fetch-step.ts'

const commit = '0123456789abcdef0123456789abcdef01234567'
const folder = '/home/me/hub/models--o--m'
const of = (source: string | undefined, argv = ['vllm', 'serve', source ?? 'x']) =>
  behindFetch(argv, { infer: ['/opt/infer'], source, cache: '/scratch' })

test.each([
  ['/shared/m.gguf', undefined],
  [undefined, undefined],
  ['Qwen/Qwen3-8B', ['hf:Qwen/Qwen3-8B']],
  [`${folder}/snapshots/${commit}/m.gguf`, [`hf:o/m@${commit}`, '--file', 'm.gguf', '--at', folder]],
  [`${folder}/snapshots/${commit}`, [`hf:o/m@${commit}`, '--at', folder]],
  [
    `${folder}/snapshots/${commit}/m-00001-of-00002.gguf`,
    [`hf:o/m@${commit}`, '--file', 'm-00001-of-00002.gguf', '--file', 'm-00002-of-00002.gguf', '--at', folder],
  ],
])('a model from %s', async (source, own) => {
  const argv = ['vllm', 'serve', source ?? 'x']
  const expected = own ? ['/opt/infer', 'model', 'fetch', ...own, '--cache', '/scratch', '--', ...argv] : argv
  expect(await of(source)).toEqual(expected)
})

test('the download gets the hub and the proxy of the server, and no key', () =>
  expect(fetchEnvironment({ HF_ENDPOINT: 'http://hub', https_proxy: 'http://p', HF_TOKEN: 's', PATH: '/' })).toEqual({
    HF_ENDPOINT: 'http://hub',
    https_proxy: 'http://p',
    HF_HUB_OFFLINE: '0',
  }))
