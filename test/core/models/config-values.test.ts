import { expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { configKeys, configValues, variableValues } from '../../../core/models/config-keys.ts'

const keys = configKeys()
const none = { isInFile: () => false, fromCommandLine: [], pending: [] }
const values = (text: string, more: Partial<Parameters<typeof configValues>[2]> = {}) =>
  new Map(configValues(parseConfig(text, 'infer.yaml'), keys, { ...none, ...more }).map(one => [one.key, one]))

test('without a file every key has its default, or says what no value means', () => {
  const found = values('')
  expect(found.get('limits.json_body')).toMatchObject({ value: '1MiB', default: '1MiB', source: 'default' })
  expect(found.get('public_url')).toMatchObject({ value: null, absent: expect.stringContaining('none') as string })
  for (const { key, value, default: written, absent } of found.values())
    expect([
      key,
      value === null ? absent !== null || key === 'prompt_rewriting.model' : value === (written ?? value),
    ]).toEqual([key, true])
})

test('values are written as in the file, with the source', () => {
  const isInFile = (path: readonly string[]) => path.join('.') === 'webhooks.retry_delays'
  const found = values(
    'listen: 0.0.0.0:80\nwebhooks: {retry_delays: [5000, 300000]}\nplans: {team: {share: 3}}\nlimits: {json_body: 2MiB}',
    { isInFile, fromCommandLine: ['listen'], pending: ['limits.json_body', 'webhooks'] },
  )
  expect(found.get('listen')).toMatchObject({ value: '0.0.0.0:80', source: 'command_line', isPending: false })
  expect(found.get('webhooks.retry_delays')).toMatchObject({ value: '[ 5s, 5m ]', source: 'file', isPending: true })
  expect(found.get('plans')).toMatchObject({ value: '[ team ]' })
  expect(found.get('limits.json_body')).toMatchObject({ value: '2MiB', isPending: true })
  expect(found.get('limits.depth')).toMatchObject({ isPending: false })
})

test('models, which may contain secrets, and keys that only group others are left out', () => {
  const found = [...values('').keys()]
  expect(found.filter(key => key.startsWith('models') || key === 'limits' || key === 'cors')).toEqual([])
  expect(found).toContain('cors.origins')
})

test('no variable shows a secret', () => {
  const found = new Map(
    variableValues({
      INFER_MASTER_KEY: 'key',
      INFER_TOKEN: 'sk-infer-x',
      HF_TOKEN: 'hf_x',
      HTTPS_PROXY: 'http://user:password@proxy',
      PIP_INDEX_URL: 'https://user:password@index',
      INFER_CACHE_DIR: '/var/cache/infer',
      HF_HOME: 's3://user:password@bucket',
    }).map(one => [one.name, one]),
  )
  expect(found.get('INFER_CACHE_DIR')).toMatchObject({ isSet: true, value: '/var/cache/infer' })
  expect(found.get('INFER_MASTER_KEY')).toMatchObject({ isSet: true, value: null })
  expect(found.get('NO_COLOR')).toMatchObject({ isSet: false, value: null })
  expect([...found.values()].flatMap(({ value }) => value ?? [])).toEqual(['/var/cache/infer'])
})
