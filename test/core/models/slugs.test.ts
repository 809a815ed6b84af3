import { expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { closeSlugs, everySlugOf, slugsOf, slugTable } from '../../../core/models/slugs.ts'
import type { Task } from '../../../core/schemas/task.ts'

const model = (id: string, tasks: Task[], slug?: string, enabled = true) => ({ id, tasks, slug, enabled })
const t2v = 'slug/text-to-video'
const i2v = 'slug/image-to-video'

test.each<[string, ReturnType<typeof model>, Record<string, string>, Record<string, string>]>([
  ['text has none', model('m', ['std/embeddings'], 's'), {}, {}],
  ['one task, no slug', model('m', [t2v]), { [t2v]: 'm/text-to-video' }, { 'm/text-to-video': t2v }],
  [
    'one task, a slug of several parts',
    model('m', [t2v], 'wan/v2/t2v'),
    { [t2v]: 'wan/v2/t2v' },
    { 'wan/v2/t2v': t2v, 'wan/v2/t2v/text-to-video': t2v, 'm/text-to-video': t2v },
  ],
  [
    'several tasks',
    model('o/m', [t2v, 'std/score', i2v], 'wan'),
    { [t2v]: 'wan/text-to-video', [i2v]: 'wan/image-to-video' },
    {
      'wan/text-to-video': t2v,
      'wan/image-to-video': i2v,
      'o/m/text-to-video': t2v,
      'o/m/image-to-video': i2v,
    },
  ],
])('slugs: %s', (_, one, shown, every) => {
  expect(Object.fromEntries(slugsOf(one))).toEqual(shown)
  expect(Object.fromEntries(everySlugOf(one))).toEqual(every)
})

test('a disabled model is reached by none', () => {
  expect([...slugTable([model('a', [t2v]), model('b', [t2v], 'b', false)]).keys()]).toEqual(['a/text-to-video'])
})

const entry = (id: string, more: string) => `  - {id: ${id}, source: x, tasks: [${t2v}]${more}}\n`
test.each([
  [
    'the same slug',
    entry('a', ', slug: wan') + entry('b', ', slug: wan'),
    "'a' and 'b' would both have the path /slug/wan",
  ],
  [
    'a slug like an id',
    entry('a', '') + entry('b', ', slug: a'),
    "'a' and 'b' would both have the path /slug/a/text-to-video",
  ],
  ['a reserved part', entry('a', ', slug: requests/x'), "begins with 'requests'"],
  ['a reserved id', entry('queue', ''), "begins with 'queue'"],
])('%s is an error that names both', (_, models, words) => {
  expect(() => parseConfig(`models:\n${models}`, 'infer.yaml')).toThrow(words)
  expect(() => parseConfig(`models:\n${models}`, 'infer.yaml')).toThrow(/^infer\.yaml:\d+:\d+: /)
})

test('a disabled model may have the slug of another', () => {
  const models = entry('a', ', slug: wan') + entry('b', ', slug: wan, enabled: false')
  expect(parseConfig(`models:\n${models}`, 'infer.yaml').models).toHaveLength(2)
})

test.each([
  ['wan/text-to-vide', ['wan/text-to-video', 'demo/text-to-video', 'wan/image-to-video']],
  ['wan', ['wan/text-to-video', 'wan/image-to-video']],
  ['fal-ai/demo', ['demo/text-to-image', 'demo/text-to-video']],
  ['zzz', []],
  ['', []],
])('for %s the suggestion is %j', (wanted, expected) => {
  const slugs = ['wan/text-to-video', 'wan/image-to-video', 'demo/text-to-image', 'demo/text-to-video']
  expect(closeSlugs(wanted, slugs)).toEqual(expected)
})
