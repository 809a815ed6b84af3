import { expect, test } from 'vitest'
import { checkOtherInfers, type OtherInferFacts, otherInfers } from '../../../cli/doctor/other-infers.ts'
import type { Model } from '../../../core/models/model.ts'
import { fakeServer } from '../_server.ts'

const models = [{ id: 'far', upstreamId: 'qwen' }]
const ofBox = (answer: OtherInferFacts['answer'], variable: string | undefined = 'BOX') =>
  checkOtherInfers([{ url: 'http://box:8787', variable, models, answer }])[0]

test.each<[OtherInferFacts['answer'], string, RegExp]>([
  [{ kind: 'unset' }, 'warning', /BOX with the token for http:\/\/box:8787 is not set here/],
  [{ kind: 'unreachable', fault: 'ECONNREFUSED' }, 'broken', /cannot be reached: ECONNREFUSED/],
  [{ kind: 'refused', status: 401, message: 'No such token' }, 'broken', /answers 401: No such token/],
  [{ kind: 'listed', ids: new Set(['llama']) }, 'broken', /has no model 'qwen' for this token/],
  [{ kind: 'listed', ids: new Set(['qwen']) }, 'fine', /has far$/],
])('%j', (answer, state, detail) => {
  const found = ofBox(answer)
  expect(found).toMatchObject({ state, detail: expect.stringMatching(detail) as string })
  expect(found?.advice === null).toBe(state === 'fine')
})

test('another infer is asked once for each token, with the token', async () => {
  const { url, seen } = await fakeServer((_, response) =>
    response.end(JSON.stringify({ object: 'list', data: [{ id: 'qwen' }] })),
  )
  const model = (id: string, more: object) => ({ id, engine: 'infer', enabled: true, url, ...more }) as unknown as Model
  const models = [
    model('qwen', { api_key_env: 'BOX' }),
    model('other', { api_key_env: 'BOX' }),
    model('open', { upstream_id: 'qwen' }),
    model('hidden', { api_key_env: 'UNSET' }),
  ]
  const found = await otherInfers({ models, peers: {} }, { BOX: 'sk-1' })
  expect(checkOtherInfers(found).map(({ state }) => state)).toEqual(['broken', 'fine', 'warning'])
  expect(seen.map(({ path, authorization }) => [path, authorization])).toEqual(
    expect.arrayContaining([
      ['/std/v1/models', 'Bearer sk-1'],
      ['/std/v1/models', undefined],
    ]),
  )
  expect(seen).toHaveLength(2)
})

test('one that answers something else, or nothing', async () => {
  const { url } = await fakeServer((_, response) => response.end('<html>'))
  const one = (at: string) => ({ id: 'm', engine: 'infer', enabled: true, url: at }) as Model
  const found = checkOtherInfers(await otherInfers({ models: [one(url), one('http://127.0.0.1:1')], peers: {} }, {}))
  expect(found.map(({ detail }) => detail)).toEqual([
    `${url} cannot be reached: its answer is none of an infer`,
    'http://127.0.0.1:1 cannot be reached: ECONNREFUSED',
  ])
})

test('a peer offers all that it lists', async () => {
  let data: object[] = [{ id: 'qwen' }, { id: 'flux' }]
  const { url } = await fakeServer((_, response) => response.end(JSON.stringify({ object: 'list', data })))
  const ask = async () => checkOtherInfers(await otherInfers({ models: [], peers: { box2: { url } } }, {}))
  expect(await ask()).toMatchObject([{ name: 'peer box2', state: 'fine', detail: `${url} offers 2 models` }])
  data = []
  expect(await ask()).toMatchObject([{ name: 'peer box2', state: 'warning', advice: expect.any(String) as string }])
})
