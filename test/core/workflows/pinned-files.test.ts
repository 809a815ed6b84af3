import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import { withFileIds, withFileUrls } from '../../../core/workflows/pinned-files.ts'

const own = 'file-01ARZ3NDEKTSV4RRFFQ69G5FAA'
const foreign = 'file-01ARZ3NDEKTSV4RRFFQ69G5FAB'
const missing = 'file-01ARZ3NDEKTSV4RRFFQ69G5FAC'
const files = {
  find: (id: string) => {
    const organizationId = { [own]: 'org_own', [foreign]: 'org_other' }[id]
    return Promise.resolve(organizationId === undefined ? undefined : ({ id, organizationId } as FileRecord))
  },
}
const urlOf = (id: string, rest = '/a.png?exp=1&sig=x') => `https://any.example/files/${id}${rest}`

test.each([
  [urlOf(own), own],
  [urlOf(own, ''), own],
  [urlOf(own, '?exp=1'), own],
  [urlOf(foreign), urlOf(foreign)],
  [urlOf(missing), urlOf(missing)],
  [`see ${urlOf(own)}`, `see ${urlOf(own)}`],
  [`https://any.example/x/files/${own}`, `https://any.example/x/files/${own}`],
  [own, own],
])('the pinned text %s is kept as %s', async (given, kept) => {
  const pin = { images: [{ url: given }] }
  const before = structuredClone(pin)
  const node = { task: 'text/template', inputs: { template: given } }
  const dag = Dag.parse({ nodes: { a: { ...node, pin }, b: node } })
  const next = await withFileIds(dag, 'org_own', files)
  expect(next.nodes.a!.pin).toEqual({ images: [{ url: kept }] })
  expect(next.nodes.b).toEqual(dag.nodes.b)
  expect(pin).toEqual(before)
})

test('ids of the files that the reader may have are shown as URLs where results have such', async () => {
  const link = (id: string) => Promise.resolve(id === own ? 'url' : undefined)
  const pin = { url: own, thumbnail_url: own, file_id: own, text: own, list: [{ url: foreign }, { audio_url: own }] }
  expect(await withFileUrls(pin, link)).toEqual({
    ...pin,
    url: 'url',
    thumbnail_url: 'url',
    list: [{ url: foreign }, { audio_url: 'url' }],
  })
  expect(await withFileUrls(own, link)).toBe(own)
})
