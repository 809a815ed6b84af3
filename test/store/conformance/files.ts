import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import type { Subject } from './conformance.ts'
import { completed, createOrganization, newFile, newJob, newVideo, organizationId } from './records.ts'

/** Files and the library of videos. */
export function fileRules({ store }: Subject): void {
  const idsOf = (rows: { id: string }[]): string[] => rows.map(({ id }) => id)
  const organization = async (name: string): Promise<string> => (await createOrganization(store, name)).id

  /** Videos that a job of the organization has generated. */
  async function make(owner: string, ...items: NonNullable<Parameters<typeof newVideo>[0]>[]) {
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const made = items.map(item => newVideo({ organizationId: owner, jobId: job.id, ...item }))
    const claim = (await store.jobs.claim(owner, job.id, Date.now()))!
    const [files, library] = [made.flatMap(({ files }) => files), made.flatMap(({ library }) => library)]
    await store.jobs.settle(claim, { ...completed(), files, library })
    return { claim, files, library }
  }

  test('a file is read as it was added, and is listed newest first, by purpose, a page at a time', async () => {
    const owner = await organization('org_files')
    const files = []
    for (const purpose of ['upload', 'input', 'upload', 'thumbnail', 'output'] as const)
      files.push(await store.files.add(newFile({ organizationId: owner, purpose })))
    const newest = idsOf(files).sort().reverse()
    expect(await store.files.find(files[0]!.id)).toEqual(files[0])
    expect(await store.files.find(newId('file'))).toBeUndefined()
    expect(idsOf(await store.files.list(owner, { limit: 100 }))).toEqual(newest)
    expect(idsOf(await store.files.list(owner, { limit: 2, after: newest[1]! }))).toEqual(newest.slice(2, 4))
    const uploads = idsOf(files.filter(({ purpose }) => purpose === 'upload')).sort()
    expect(idsOf(await store.files.list(owner, { limit: 9, purpose: 'upload' }))).toEqual(uploads.reverse())
    expect(await store.files.list('org_absent', { limit: 9 })).toEqual([])
  })

  test('the files API lists its files by purpose and in both orders, without others, removed and expired ones', async () => {
    const owner = await organization('org_api_files')
    const files = []
    for (const apiPurpose of ['batch', 'user_data', null, 'batch', 'batch_output'] as const)
      files.push(await store.files.add(newFile({ organizationId: owner, purpose: 'upload', apiPurpose })))
    const expired = await store.files.add(newFile({ organizationId: owner, apiPurpose: 'batch', expiresAt: 100 }))
    const removed = await store.files.add(newFile({ organizationId: owner, apiPurpose: 'batch' }))
    expect(await store.files.delete(organizationId, removed.id, 5)).toBeUndefined()
    expect(await store.files.delete(owner, removed.id, 5)).toEqual({ ...removed, removedAt: 5 })
    expect(await store.files.delete(owner, removed.id, 6)).toBeUndefined()
    const listed = idsOf(files.filter(({ apiPurpose }) => apiPurpose !== null)).sort()
    const page = { limit: 9, now: 100 }
    const list = async (given: Partial<Parameters<typeof store.files.listOfApi>[1]>) =>
      idsOf(await store.files.listOfApi(owner, { ...page, order: 'asc', ...given }))
    expect(await list({})).toEqual(listed)
    expect(await list({ order: 'desc' })).toEqual(listed.toReversed())
    expect(await list({ limit: 2, after: listed[0]! })).toEqual(listed.slice(1, 3))
    expect(await list({ order: 'desc', after: listed[2]! })).toEqual(listed.slice(0, 2).toReversed())
    expect(await list({ purpose: 'batch' })).toEqual([files[0]!.id, files[3]!.id].sort())
    expect(await list({ purpose: 'batch_output' })).toEqual([files[4]!.id])
    expect(await list({ purpose: 'batch', now: 99 })).toHaveLength(3)
    expect(await store.files.delete(owner, expired.id, 100)).toBeUndefined()
    await store.files.remove(owner, expired.id, 100)
    await store.files.erased([removed.id, expired.id])
  })

  test('a file that an unfinished job needs is not deleted, and the refusal names the job', async () => {
    const owner = await organization('org_needed_file')
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const file = await store.files.add(newFile({ organizationId: owner, apiPurpose: 'batch', jobId: job.id }))
    const refused = await store.files.delete(owner, file.id, 5).catch((thrown: unknown) => thrown)
    expect(refused).toMatchObject({ code: 'conflict', message: expect.stringContaining(`the job ${job.id}`) })
    await store.jobs.cancel(owner, job.id, 6)
    expect(await store.files.delete(owner, file.id, 7)).toMatchObject({ removedAt: 7 })
    await store.files.erased([file.id])
  })

  test('a removed file stays known and is not listed; one of another organization is not removed; its bytes are freed once', async () => {
    const owner = await organization('org_removed')
    const file = await store.files.add(newFile({ organizationId: owner }))
    expect(await store.files.remove(organizationId, file.id, 5)).toBeUndefined()
    expect(await store.files.remove(owner, file.id, 5)).toEqual({ ...file, removedAt: 5 })
    expect(await store.files.remove(owner, file.id, 6)).toEqual({ ...file, removedAt: 5 })
    expect(await store.files.find(file.id)).toEqual({ ...file, removedAt: 5 })
    expect(await store.files.list(owner, { limit: 9 })).toEqual([])
    const freed = async () => idsOf(await store.files.expire(7, 1000)).includes(file.id)
    expect([await freed(), await freed()]).toEqual([true, true])
    await store.files.erased([file.id, newId('file')])
    expect(await freed()).toBe(false)
  })

  test('expired files are removed, a few at a time, the earliest first', async () => {
    const owner = await organization('org_over')
    const files = []
    for (const expiresAt of [30, 10, 20, null])
      files.push(await store.files.add(newFile({ organizationId: owner, expiresAt })))
    expect(await store.files.expire(9, 10)).toEqual([])
    const first = await store.files.expire(30, 2)
    expect(first.map(({ id, removedAt }) => [id, removedAt])).toEqual([
      [files[1]!.id, 30],
      [files[2]!.id, 30],
    ])
    await store.files.erased(idsOf(first))
    const rest = await store.files.expire(31, 2)
    expect(idsOf(rest)).toEqual([files[0]!.id])
    await store.files.erased(idsOf(rest))
    expect(idsOf(await store.files.list(owner, { limit: 9 }))).toEqual([files[3]!.id])
  })

  test('the inputs of a job do not expire before its end', async () => {
    const now = Date.now()
    const { job } = await store.jobs.submit(newJob({ retentionMs: 50 }))
    const input = await store.files.add(newFile({ purpose: 'input', jobId: job.id, expiresAt: now }))
    const orphan = await store.files.add(newFile({ purpose: 'input', jobId: newId('job'), expiresAt: now }))
    const removed = await store.files.expire(now, 10)
    expect(idsOf(removed)).toEqual([orphan.id])
    expect(await store.files.find(input.id)).toMatchObject({ removedAt: null })
    await store.jobs.cancel(organizationId, job.id, now + 10)
    expect((await store.files.find(input.id))?.expiresAt).toBe(now + 60)
    expect(idsOf(await store.files.expire(now + 60, 10))).toContain(input.id)
  })

  test('a late result leaves no file, no video and no log', async () => {
    const owner = await organization('org_late')
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const claim = (await store.jobs.claim(owner, job.id, Date.now()))!
    await store.jobs.cancel(owner, job.id, 1)
    const { library, files } = newVideo({ organizationId: owner, jobId: job.id })
    const late = { ...completed(), library, files, logs: '[{"at":1,"level":"INFO","message":"x"}]' }
    expect(await store.jobs.settle(claim, late)).toBe(false)
    for (const { id } of files) expect(await store.files.find(id)).toBeUndefined()
    expect(await store.library.list(owner, { limit: 9 })).toEqual({ items: [], next: null })
    expect(await store.jobs.logs(owner, job.id)).toBe('[]')
  })

  test('a result with a refused part is refused as a whole', async () => {
    const owner = await organization('org_whole')
    const taken = await store.files.add(newFile({ organizationId: owner }))
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const claim = (await store.jobs.claim(owner, job.id, Date.now()))!
    const good = newFile({ organizationId: owner })
    await expect(store.jobs.settle(claim, { ...completed(), files: [good, taken] })).rejects.toMatchObject({
      code: 'internal_error',
    })
    expect(await store.files.find(good.id)).toBeUndefined()
    expect((await store.jobs.find(owner, job.id))?.status).toBe('processing')
    expect(await store.jobs.settle(claim, { ...completed(), files: [good] })).toBe(true)
  })

  test('a video is in the library with its file, and both are removed when either is', async () => {
    const owner = await organization('org_library')
    const { files, library } = await make(owner, {}, {}, {})
    const [first, second, third] = library
    const item = await store.library.find(owner, first!.id)
    expect(item).toEqual({ ...first, file: { ...files[0], removedAt: null } })
    expect(await store.library.find(organizationId, first!.id)).toBeUndefined()
    expect(await store.library.remove(organizationId, first!.id, 4)).toBeUndefined()
    expect(await store.library.remove(owner, first!.id, 4)).toEqual({ ...item, file: { ...item!.file, removedAt: 4 } })
    expect(await store.library.remove(owner, first!.id, 4)).toBeUndefined()
    await store.files.remove(owner, second!.id, 4)
    for (const gone of [first, second]) {
      expect(await store.library.find(owner, gone!.id)).toBeUndefined()
      for (const id of [gone!.id, gone!.thumbnailId!]) expect((await store.files.find(id))?.removedAt).toBe(4)
    }
    expect(idsOf((await store.library.list(owner, { limit: 9 })).items)).toEqual([third!.id])
  })

  test('images and audio are in the library without the figures of videos, and are found by their kind', async () => {
    const owner = await organization('org_kinds')
    const none = { fps: null, numFrames: null }
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const made = (['image/png', 'audio/mpeg', 'video/mp4'] as const).map(contentType => {
      const { files, library } = newVideo({ organizationId: owner, jobId: job.id })
      const file = { ...files[0]!, contentType }
      const item = contentType === 'video/mp4' ? library[0]! : { ...library[0]!, ...none, thumbnailId: null }
      return { file, item: contentType === 'audio/mpeg' ? { ...item, seed: null } : item }
    })
    const claim = (await store.jobs.claim(owner, job.id, Date.now()))!
    const outcome = { files: made.map(({ file }) => file), library: made.map(({ item }) => item) }
    const thumbnail = newFile({ organizationId: owner, jobId: job.id, id: made[2]!.item.thumbnailId! })
    await store.jobs.settle(claim, { ...completed(), ...outcome, files: [...outcome.files, thumbnail] })
    for (const [at, kind] of (['image', 'audio', 'video'] as const).entries()) {
      const { items } = await store.library.list(owner, { limit: 9, kind })
      expect(items).toEqual([{ ...made[at]!.item, file: { ...made[at]!.file, removedAt: null } }])
    }
  })

  test('the library is searched by words in any case, model and time, newest first, a page at a time', async () => {
    const owner = await organization('org_search')
    const { library } = await make(
      owner,
      { prompt: 'A red Fox in the SNOW', createdAt: 100 },
      { prompt: 'Ein Fuchs im Schnee, ÄRGER im 100% Nebel', createdAt: 200, modelId: 'other' },
      { prompt: '雪の中の狐 fox_', createdAt: 300 },
    )
    const newest = idsOf(library).sort().reverse()
    const search = async (filter: object) => {
      const { items, next } = await store.library.list(owner, { limit: 10, ...filter })
      expect(next).toBeNull()
      return items.map(({ id }) => library.findIndex(item => item.id === id)).sort((a, b) => a - b)
    }
    expect(await search({})).toEqual([0, 1, 2])
    expect(await search({ search: 'FOX' })).toEqual([0, 2])
    expect(await search({ search: '  snow   a ' })).toEqual([0])
    expect(await search({ search: 'ärger' })).toEqual([1])
    expect(await search({ search: '狐' })).toEqual([2])
    expect(await search({ search: '0% n' })).toEqual([1])
    expect(await search({ search: 'fox_' })).toEqual([2])
    expect(await search({ search: 'wolf' })).toEqual([])
    expect(await search({ modelId: 'other' })).toEqual([1])
    expect(await search({ createdAfter: 100, createdBefore: 300 })).toEqual([1])
    const page = await store.library.list(owner, { limit: 2 })
    expect([idsOf(page.items), page.next]).toEqual([newest.slice(0, 2), newest[1]])
    const rest = await store.library.list(owner, { limit: 2, after: page.next! })
    expect([idsOf(rest.items), rest.next]).toEqual([newest.slice(2), null])
  })
}
