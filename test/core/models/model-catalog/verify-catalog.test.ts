import { expect, onTestFinished, test } from 'vitest'
import { type HubSettings, hubSettings } from '../../../../core/models/hub/settings.ts'
import type { CatalogModel } from '../../../../core/models/model-catalog/catalog-model.ts'
import { findCatalogModel } from '../../../../core/models/model-catalog/model-catalog.ts'
import { type RepositoryCheck, verifyCatalog } from '../../../../core/models/model-catalog/verify-catalog.ts'
import { openHub, type Repository } from '../../../fixtures/hub.ts'

const retryRules = { attempts: 2, backoffMs: 1, silenceMs: 1_000 }
const base = findCatalogModel('qwen3-8b')!
const bytes = Buffer.alloc(500, 1)

function model(change: Partial<CatalogModel['builds'][number]> = {}): CatalogModel {
  return {
    ...base,
    builds: [{ ...base.builds[0]!, repository: 'o/m', file: 'm-Q4_K_M.gguf', bytes: 500, sha256: null, ...change }],
  }
}

async function check(models: CatalogModel[], repositories: Record<string, Repository>) {
  const hub = await openHub(repositories)
  onTestFinished(() => hub.close())
  const settings = hubSettings({ HF_ENDPOINT: hub.endpoint, HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' })
  return checksOf(models, settings)
}

async function checksOf(models: CatalogModel[], hub: HubSettings): Promise<RepositoryCheck[]> {
  const found: RepositoryCheck[] = []
  for await (const one of verifyCatalog(models, { hub, signal: new AbortController().signal, retryRules }))
    found.push(one)
  return found
}
const there: Repository = { files: { 'm-Q4_K_M.gguf': bytes }, license: 'apache-2.0' }

test('matching data of the hub is confirmed', async () => {
  expect(await check([model()], { 'o/m': there })).toEqual([
    { model: 'qwen3-8b', repository: 'o/m', result: 'confirmed', notes: [] },
  ])
})

test.each([
  ['size', model({ bytes: 400 }), there, 'changed', 'm-Q4_K_M.gguf has 500 bytes, not 400'],
  ['hash', model({ sha256: 'a'.repeat(64) }), there, 'changed', /has the SHA-256 [0-9a-f]{64}, not aaaa/],
  ['license', model(), { ...there, license: 'mit' }, 'changed', 'license is mit, not apache-2.0'],
  ['gate', model({ gated: false }), { ...there, gatedFor: 't' }, 'changed', 'is gated now'],
  ['file', model({ file: 'other.gguf' }), there, 'missing', 'no file other.gguf'],
  ['quantization', model({ file: null, quantization: 'Q8_0' }), there, 'missing', 'no file Q8_0'],
  ['image encoder', model({ projector: { file: 'p.gguf', bytes: null } }), there, 'missing', 'no file p.gguf'],
  ['unknown size', model({ bytes: null }), there, 'confirmed', 'm-Q4_K_M.gguf has 500 bytes'],
] as const)('%s', async (_, wanted, repository, result, note) => {
  const [found] = await check([wanted], { 'o/m': repository })
  expect(found).toMatchObject({ result, notes: [expect.stringMatching(note)] })
})

test('a missing repository is one finding among others', async () => {
  const found = await check([model({ repository: 'o/gone' }), model()], { 'o/m': there })
  expect(found.map(({ repository, result }) => [repository, result])).toEqual([
    ['o/gone', 'missing'],
    ['o/m', 'confirmed'],
  ])
})

test('an unreachable hub ends the check', async () => {
  const hub = hubSettings({ HF_ENDPOINT: 'http://127.0.0.1:1' })
  await expect(checksOf([model()], hub)).rejects.toThrow('127.0.0.1:1 cannot be reached')
})
