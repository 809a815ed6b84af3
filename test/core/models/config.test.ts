import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { Failure } from '../../../core/failure.ts'
import { configSchema, parseConfig, readConfig } from '../../../core/models/config.ts'
import { addModel, schemaHint } from '../../../core/models/edit.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'
import { infer, json, temporaryFolder } from '../../cli/_infer.ts'

const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true })
formats.default(ajv)
const validate = ajv.compile(configSchema())

/** The first configuration of the README. */
const example = /```yaml config\n([\s\S]*?)```/.exec(readFileSync('README.md', 'utf8'))![1]!

describe('the schema and the program agree', () => {
  test.each<[rule: string, text: string]>([
    ['the example of the README', example],
    ['a file of comments', '# nothing yet\n'],
    ['a list that was commented out', 'models:\n#  - id: a\n'],
    ['no models', 'models: []\n'],
    ['a file that infer made', addModel('', { id: 'a/b:c', source: '/a.gguf', tasks: ['std/rerank'] })],
    ['limits in words and in figures', 'limits: {drain_timeout: 90s, json_body: 2MiB, depth: 32, min_free_disk: 0}\n'],
    ['times and sizes', 'models: [{id: a, idle_ttl: 1.5h, memory: 24 GB, load_timeout: 1000}]\n'],
    ['the processor', 'models: [{id: a, devices: cpu, replicas: {min: 1, max: 2}}]\n'],
    ['addresses', 'listen: "[::1]:80"\npublic_url: https://ai.example.com\nallowed_hosts: [ai.example.com]\n'],
  ])('right: %s', (_, text) => {
    const value: unknown = parse(text) ?? {}
    expect([validate(value), validate.errors]).toEqual([true, null])
    expect(() => parseConfig(text, 'infer.yaml')).not.toThrow()
  })

  test.each<[place: string, text: string, says: string]>([
    ['1:1', 'modles: []\n', "There is no setting 'modles'. Did you mean 'models'?"],
    ['1:1', 'colour: blue\n', 'infer config explain'],
    ['1:1', 'listen: [1]\n', "'listen' must be a string"],
    ['1:1', '- id: a\n', "such as 'models:'"],
    ['1:1', 'listen: 127.0.0.1:99999\n', "'listen': must be host:port"],
    ['1:1', 'listen: http://127.0.0.1:80\n', "'listen': must be host:port"],
    ['1:1', 'models: 3\n', "'models'"],
    ['1:1', 'public_url: example\n', "'public_url'"],
    ['1:10', 'limits: {jsn_body: 1}\n', "Did you mean 'json_body'?"],
    ['2:3', 'limits:\n  drain_timeout: soon\n', '30s'],
    ['2:5', 'models:\n  - source: /a\n', "Missing: 'models[0].id'"],
    ['2:5', 'models:\n  - id: a b\n', "'models[0].id'"],
    ['3:5', 'models:\n  - id: a\n    memory: much\n', '24GB'],
    ['3:5', 'models:\n  - id: a\n    contxt_length: 1\n', "Did you mean 'context_length'?"],
    ['3:5', 'models:\n  - id: a\n    memory: 150G\n', "Did you mean '150GB'?"],
    ['3:5', 'models:\n  - id: a\n    idle_ttl: 5 min\n', "Did you mean '5m'?"],
    ['3:5', 'models:\n  - id: a\n    api_key: sk-1\n', "Did you mean 'api_key_env'?"],
    ['3:5', 'models:\n  - id: a\n    num_ctx: 8192\n', "Did you mean 'context_length'?"],
    ['3:5', 'models:\n  - id: a\n    url: localhost:8080/v1\n', "Did you mean 'http://localhost:8080/v1'?"],
    ['3:5', 'models:\n  - id: a\n    url: ftp://api.example.com\n', "Did you mean 'https://api.example.com'?"],
    ['1:1', 'public_url: ai.example.com\n', "Did you mean 'https://ai.example.com'?"],
    ['3:13', 'models:\n  - id: a\n    tasks: [std/chat]\n', 'std/chat-completion'],
    ['3:5', 'models:\n  - id: a\n    tasks: []\n', "'models[0].tasks'"],
    ['3:16', 'models:\n  - id: a\n    replicas: {min: -1}\n', "'models[0].replicas.min'"],
    ['3:5', 'models:\n  - id: a\n    command: []\n', "'models[0].command'"],
    ['3:5', 'models:\n  - id: a\n    health_path: health\n', "'models[0].health_path'"],
    ['3:11', 'models:\n  - id: a\n    env: {A: 1}\n', "'models[0].env.A' must be a string"],
    ['3:5', 'models:\n  - id: a\n    devices: gpu\n', "'models[0].devices'"],
  ])('wrong at %s: %s', (place, text, says) => {
    expect(validate(parse(text))).toBe(false)
    const wrong = faultOf(text)
    expect(wrong.message).toContain(says)
    const [line, column] = place.split(':')
    // The value or its name: an editor jumps to either.
    expect(wrong.message).toMatch(new RegExp(`^/etc/infer\\.yaml:${line}:${column}: `))
  })
})

function faultOf(text: string): Failure {
  try {
    parseConfig(text, '/etc/infer.yaml', traitsOf)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure)
    return thrown as Failure
  }
  throw new Error('It was accepted.')
}

const bomb = Array.from(
  'abcdefghi',
  (name, at) => `${name}: &${name} [${`${at === 0 ? 'x' : `*${'abcdefghi'[at - 1]}`}, `.repeat(10)}]\n`,
).join('')

test.each<[rule: string, text: string, says: RegExp]>([
  ['no YAML', 'models: [\n  - a\n', /^\/etc\/infer\.yaml:\d+:\d+: .*valid YAML/],
  ['two documents', 'listen: :1\n---\nlisten: :2\n', /^\/etc\/infer\.yaml:2:1: A second document begins here/],
  ['nesting without end', `models: ${'['.repeat(50_000)}`, /^\/etc\/infer\.yaml.*nested too deeply/],
  ['an alias that expands without bound', bomb, /^\/etc\/infer\.yaml: Aliases .* stand for too many values\./],
  ['an alias of nothing', 'models: *nope\n', /^\/etc\/infer\.yaml: The alias '\*nope' has no anchor/],
  ['an alias in its own list', 'models: &a [*a]\n', /^\/etc\/infer\.yaml: Aliases .* contain themselves\./],
  [
    'an alias in its own value',
    'models: [{id: a, env: &e {A: *e}}]\n',
    /^\/etc\/infer\.yaml: Aliases .* contain themselves/,
  ],
  ['a key twice', 'listen: :1\nlisten: :2\n', /^\/etc\/infer\.yaml:2:1: .*unique/],
  ['an id twice', 'models:\n  - {id: a, source: /a}\n  - {id: a, source: /b}\n', /yaml:3:6: .*'a' is used twice/],
  ['an engine that is not there', 'models:\n  - id: a\n    engine: vlm\n', /yaml:3:5: .*no engine 'vlm'.*vllm/],
  ['an engine that lacks something', 'models:\n  - id: a\n', /yaml:2:5: .*'source'/],
])('refused beyond the schema: %s', (_, text, says) => {
  expect(faultOf(text).message).toMatch(says)
})

test('aliases are read', () => {
  const { models } = parseConfig('models: [{id: a, source: /a, env: &e {A: b}}, {id: b, source: /b, env: *e}]', 'x')
  expect(models.map(({ env }) => env)).toEqual([{ A: 'b' }, { A: 'b' }])
})

test('a file that is not there is named', () => {
  expect(() => readConfig('/no/such.yaml', true)).toThrow(
    'The configuration /no/such.yaml cannot be read: no such file or directory.',
  )
})

test('a file of many megabytes is another one, by mistake, and is not parsed', async () => {
  const path = join(temporaryFolder(), 'large.yaml')
  writeFileSync(path, '')
  truncateSync(path, 20_000_000)
  expect(() => readConfig(path, true)).toThrow(`The configuration ${path} cannot be read: it has 20 MB`)
  expect(await infer(['config', 'check', path])).toMatchObject({ exitCode: 65 })
})

test('a disabled model may be incomplete', () => {
  expect(parseConfig('models: [{id: a, enabled: false}]', 'x', traitsOf).models).toHaveLength(1)
})

test('all errors are listed, each with its path', () => {
  const { details } = faultOf('modles: []\nmodels:\n  - id: a\n    memory: much\n')
  expect(details?.map(({ path }) => path).toSorted((a, b) => a.localeCompare(b))).toEqual(['1:1', '4:5'])
})

test('the schema describes itself to editors', () => {
  const text = JSON.stringify(configSchema())
  expect(text).toContain('https://json-schema.org/draft/2020-12/schema')
  expect(text).not.toContain(String(Number.MAX_SAFE_INTEGER))
  expect(schemaHint).toMatch(/^# yaml-language-server: \$schema=\.\/infer\.schema\.json\n$/)
})

test('the command line prints the schema and checks a file with it', async () => {
  expect(json(await infer(['config', 'schema']))).toEqual(configSchema())
  const dataDir = temporaryFolder()
  const missing = await infer(['config', 'check', join(dataDir, 'infer.yaml')])
  expect([missing.exitCode, missing.stderr]).toEqual([74, expect.stringContaining('infer.yaml') as string])
  const path = join(dataDir, 'mine.yaml')
  writeFileSync(path, example)
  expect((await infer(['config', 'check', path])).stdout).toBe(`${path} is valid: 2 models.\n`)
  writeFileSync(path, 'modles: []\n')
  const wrong = await infer(['config', 'check', path])
  expect([wrong.exitCode, wrong.stderr]).toEqual([65, expect.stringContaining(`${path}:1:1: `) as string])
})

test.each<[what: string, models: string, message: RegExp]>([
  [
    'a model with a name of a peer',
    '[{ id: box2/own, source: /m.gguf }]',
    /the name 'box2\/own' is for a model of the peer 'box2'/,
  ],
  [
    'a fallback on a peer that does not exist',
    '[{ id: own, source: /m.gguf, fallbacks: [{ model: box3/far }] }]',
    /the fallback 'box3\/far' of 'own' is not the id of a model here/,
  ],
  [
    'a fallback on a peer of a model that stays here',
    '[{ id: own, source: /m.gguf, local_only: true, fallbacks: [{ model: box2/far }] }]',
    /the fallback 'box2\/far' runs elsewhere, and 'own' is 'local_only'/,
  ],
])('%s is refused', (_, models, message) => {
  expect(() => parseConfig(`peers: { box2: { url: 'http://box' } }\nmodels: ${models}`, 'infer.yaml')).toThrow(message)
})

test('a fallback may be a model of a peer, which is known only while the server runs', () => {
  const text =
    "peers: { box2: { url: 'http://box' } }\nmodels: [{ id: own, source: /m.gguf, fallbacks: [{ model: box2/far }] }]"
  expect(parseConfig(text, 'infer.yaml').models[0]?.fallbacks).toMatchObject([{ model: 'box2/far' }])
  for (const peers of ["{ infer: { url: 'http://box' } }", "{ box: { url: 'http://box/v1' } }", '{ box: {} }'])
    expect(() => parseConfig(`peers: ${peers}`, 'infer.yaml')).toThrow(/peers/)
})
