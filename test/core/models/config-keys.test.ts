import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseConfig } from '../../../core/models/config.ts'
import {
  type ConfigKey,
  configKeys,
  defaultText,
  findConfigKeys,
  nearestConfigKeys,
  sections,
} from '../../../core/models/config-keys.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'

const keys = configKeys()
const named = (name: string): ConfigKey => keys.find(({ key }) => key === name)!

test('the reference has every key of the schema, those of lists and objects too', () => {
  expect(keys.length).toBeGreaterThan(90)
  for (const name of ['listen', 'cors.origins', 'models[].replicas.min', 'media.ffmpeg', 'limits.output_size'])
    expect(named(name), name).toBeDefined()
  expect(new Set(keys.map(({ key }) => key)).size).toBe(keys.length)
  expect(Object.keys(sections)).toEqual([...new Set(keys.map(({ section }) => section))])
})

/** Sets a key in the text of a configuration that contains it, as JSON. */
function withValue(example: string, key: string, value: unknown): string {
  const whole = parse(example) as Record<string, unknown>
  const path = key.replaceAll('[]', '.0').replace('<name>', 'team').split('.')
  const inside = path.slice(0, -1).reduce((of, part) => of[part] as Record<string, unknown>, whole)
  expect(inside[path.at(-1)!]).toBeDefined()
  inside[path.at(-1)!] = value
  return JSON.stringify(whole)
}

describe.each(keys)('$key', ({ key, meaning, type, unit, required, default: value, absent, example }) => {
  test('has a meaning in whole sentences', () => expect(meaning).toMatch(/^[A-Z`].{10,}\.$/))

  test('is required, has a default, or describes the behaviour without it', () => {
    expect([required, value !== null, absent !== null].filter(Boolean)).toHaveLength(1)
    if (absent !== null) expect(absent).toMatch(/^[a-z0-9/].*[^.]$/)
  })

  test('has a unit if it is a number', () => {
    if (/number|duration|size/.test(type)) expect(unit).toMatch(/^[a-zG]/)
    else expect(unit).toBeNull()
  })

  test('has an example that the server accepts', () => {
    expect(() => parseConfig(example, 'example', traitsOf)).not.toThrow()
  })

  test('has a default that the server accepts, and another value in its example', () => {
    if (value === null) return
    const text = withValue(example, key, parse(value))
    expect(() => parseConfig(text, 'default')).not.toThrow()
    expect(text).not.toBe(JSON.stringify(parse(example)))
  })
})

test.each<[key: string, type: string, unit: string | null, value: string]>([
  ['limits.json_body', 'size', 'bytes', '1MiB'],
  ['limits.job_retention', 'duration', 'milliseconds', '7d'],
  ['limits.streams_per_token', 'whole number from 1', 'streams', '100'],
  ['metrics', 'one of local, token', null, 'local'],
  ['allowed_hosts', 'list of text', null, '[]'],
  ['models[].devices', '"auto" or "cpu" or whole number from 1 or list of whole number from 0 or text', 'GPUs', 'auto'],
  ['models[].replicas', 'keys', null, '{ min: 0, max: 1 }'],
  [
    'models[].tasks',
    expect.stringMatching(/^list of std\/chat-completion, /) as string,
    null,
    '[ std/chat-completion, std/completion ]',
  ],
])('%s: type, unit and default', (name, type, unit, value) => {
  expect(named(name)).toMatchObject({ type, unit, default: value })
})

test('defaults in words', () => {
  expect(defaultText(named('models[].id'))).toBe('required')
  expect(defaultText(named('models[].context_length'))).toBe(
    '32768, for coders 65536, less where the memory has no room; never above what the model was trained for',
  )
  expect(defaultText(named('limits.json_body'))).toBe('1MiB')
})

test.each([
  ['models[].price', /engines keep running/],
  ['models[].memory', /by a new engine/],
  ['limits.depth', /next start/],
  ['models', /when the file is saved/],
  ['caches.age', /when the file is saved/],
])('when a change of %s takes effect', (name, says) => expect(named(name).applies).toMatch(says))

test.each<[text: string, expected: string[]]>([
  ['limits.json_body', ['limits.json_body']],
  ['json_body', ['limits.json_body']],
  ['models.memory', ['models[].memory']],
  ['models[3].memory', ['models[].memory']],
  ['Memory', ['models[].memory', 'caches.memory']],
  ['min', ['models[].replicas.min']],
  ['allowed_hosts', ['allowed_hosts']],
  ['media.allowed_hosts', ['media.allowed_hosts']],
  ['limits', ['limits']],
  ['nothing', []],
])('%s means %j', (text, expected) => {
  expect(findConfigKeys(text, keys).map(({ key }) => key)).toEqual(expected)
})

test.each<[text: string, first: string | undefined]>([
  ['memroy', 'models[].memory'],
  ['limits.jsonbody', 'limits.json_body'],
  ['models[].contextlength', 'models[].context_length'],
  ['limts', 'limits'],
  ['xyzzy-plugh', undefined],
])('%s is near to %s', (text, first) => expect(nearestConfigKeys(text, keys)[0]).toBe(first))
