import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { newId } from '../../../core/ids.ts'
import { Model } from '../../../core/models/model.ts'
import type { FileRecord, JobRecord } from '../../../core/store/store.ts'
import { openContent } from '../../../core/workflows/content.ts'
import type { DefinitionSnapshots } from '../../../core/workflows/definition-snapshots.ts'
import { openNodeWorks } from '../../../core/workflows/node-run.ts'
import { admitsAll } from '../_admission.ts'

const [one, other, same] = [newId('file'), newId('file'), newId('file')]
const hashes: Record<string, string> = { [one]: 'aa', [other]: 'bb', [same]: 'aa' }
const fileOf = (id: string) =>
  Promise.resolve(Object.hasOwn(hashes, id) ? ({ id, sha256: hashes[id] } as FileRecord) : undefined)
const origin = 'http://here:80'
const content = openContent({
  files: { find: (_, id) => fileOf(id), verify: (_id, _exp, sig) => sig === 'good' },
  store: { find: fileOf },
  publicUrl: 'https://infer.example',
})

const none = () => Promise.reject(new Error('There are no large results here'))

/** What a node with these inputs takes from other nodes and gives to them. */
async function workOf(task: string, inputs: object, more: object = {}) {
  const dag = Dag.parse({ nodes: { a: { model_id: 'm', task, inputs, ...more } } })
  const snapshots = {
    id: 'e',
    organizationId: 'org',
    definition: { dag, parameters: null },
    inputParams: {},
    origin,
    createdAt: 1,
  }
  const works = openNodeWorks({
    snapshots: { of: () => Promise.resolve(snapshots) } as unknown as DefinitionSnapshots,
    admission: admitsAll({ find: () => Model.parse({ id: 'm' }) }),
    cpu: { referred: none, listed: none },
    content,
  })
  const job = { parent: { executionId: 'e', nodeId: 'a' }, organizationId: 'org', modelId: 'm', task } as unknown
  const work = await works.of(job as JobRecord)
  if (work.skipped || work.items !== undefined) throw new Error('It has no work of its own')
  const { read, key } = work
  return { read, key }
}

const chat = (more: object) => ({ messages: [{ role: 'user', content: 'x' }], ...more })
test.for<[title: string, task: string, inputs: object, read: boolean, write: boolean, more?: object]>([
  ['a chat', 'std/chat-completion', chat({}), false, false],
  ['one without chance', 'std/chat-completion', chat({ temperature: 0 }), true, true],
  ['one with a seed', 'std/chat-completion', chat({ seed: 1 }), true, true],
  ['one with a seed and chance', 'std/chat-completion', chat({ seed: 1, temperature: 0.7 }), false, false],
  ['one that wishes it all the same', 'std/chat-completion', chat({ temperature: 1 }), true, true, { cache: 'use' }],
  ['one that is to be done anew', 'std/chat-completion', chat({ seed: 1 }), false, true, { cache: 'refresh' }],
  ['one that does not wish it', 'std/chat-completion', chat({ seed: 1 }), false, false, { cache: 'off' }],
  ['a vector', 'std/embeddings', { input: 'x' }, true, true],
  ['an order', 'std/rerank', { query: 'x', documents: ['y'] }, true, true],
  ['a picture with a seed', 'slug/text-to-image', { prompt: 'x', seed: 1 }, true, true],
  ['a picture without', 'slug/text-to-image', { prompt: 'x' }, false, false],
  [
    'one of something foreign',
    'slug/image-to-image',
    { prompt: 'x', seed: 1, image_url: 'https://x.example/a.png' },
    false,
    false,
  ],
  [
    'one of something foreign, as it is wished',
    'slug/image-to-image',
    { prompt: 'x', seed: 1, image_url: 'https://x.example/a.png' },
    true,
    true,
    { cache: 'use' },
  ],
])('the result of %s', async ([, task, inputs, read, write, more]) => {
  const found = await workOf(task, inputs, more)
  expect([found.read, found.key !== null]).toEqual([read, write])
})

const film = (image_url: string) => workOf('slug/image-to-video', { prompt: 'x', seed: 1, image_url })
const look = (url: string) =>
  workOf('std/chat-completion', {
    temperature: 0,
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
const link = (id: string, at = origin, sig = 'good') => `${at}/files/${id}/a.png?exp=9&sig=${sig}`

test('files are compared by their content, whatever their names', async () => {
  for (const make of [film, look]) {
    const { key } = await make(one)
    for (const alike of [same, link(one), link(same), link(same, 'https://infer.example')])
      expect((await make(alike)).key, alike).toBe(key)
    for (const unlike of [other, link(other), link(one, origin, 'bad'), newId('file')])
      expect((await make(unlike)).key, unlike).not.toBe(key)
  }
  // An address inside a text is plain text.
  const said = await workOf('std/embeddings', { input: link(one) })
  expect((await workOf('std/embeddings', { input: link(same) })).key).not.toBe(said.key)
})
