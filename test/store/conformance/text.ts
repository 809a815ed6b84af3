import { expect, test } from 'vitest'
import type { Subject } from './conformance.ts'
import { newWorkflow } from './drawn.ts'
import { completed, newFile, newJob, organizationId } from './records.ts'

/** Outside the 16-bit plane, right to left, combined, and with a meaning to databases. */
const text = '😀 🏳️‍🌈 שלום e\u0301 ﷽ \u2028 \'"; DROP TABLE jobs; -- \\ % _ \t\n'

/** Texts and numbers are read as they were written. */
export function textRules({ store }: Subject): void {
  test('text is read as it was written, in any script', async () => {
    const inputs = JSON.stringify({ text })
    const metadata = JSON.stringify({ [text]: text })
    const logs = JSON.stringify([{ at: 1, level: 'INFO', message: text }])
    const { job } = await store.jobs.submit(newJob({ inputs, metadata, modelId: text, slug: text }))
    const claim = await store.jobs.claim(organizationId, job.id, Date.now())
    expect(claim).toMatchObject({ inputs, metadata, modelId: text, slug: text })
    const file = newFile({ name: text, jobId: job.id })
    await store.jobs.settle(claim!, { ...completed(), result: JSON.stringify(text), logs, files: [file] })
    expect((await store.jobs.find(organizationId, job.id))!.result).toBe(JSON.stringify(text))
    expect(await store.jobs.logs(organizationId, job.id)).toBe(logs)
    expect((await store.files.find(file.id))!.name).toBe(text)
    const listed = await store.jobs.list(organizationId, { limit: 10, modelId: text, metadata: { [text]: text } })
    expect(listed.jobs.map(({ id }) => id)).toEqual([job.id])
  })

  test('a workflow is found by a part of its name in any case, and no character of a search is a pattern', async () => {
    const { id } = await store.workflows.create(newWorkflow({ name: `Ärger ${text}` }))
    const found = async (search: string) =>
      (await store.workflows.list(organizationId, { limit: 10, search })).workflows.map(one => one.id)
    expect(await found('ÄRGER')).toEqual([id])
    expect(await found('😀')).toEqual([id])
    expect(await found('%')).toEqual([id])
    expect(await found('Ä_ger')).toEqual([])
    expect(await found('ä%r')).toEqual([])
  })

  test('numbers are exact as far as in JavaScript, negative ones too', async () => {
    const [lowest, highest] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
    const modelId = 'exact-numbers'
    for (const rank of [highest, lowest, highest - 1]) await store.jobs.submit(newJob({ modelId, rank }))
    const want = { modelId, class: 'async', organizationId, from: lowest, limit: 10 } as const
    expect((await store.jobs.waiting(want)).map(({ rank }) => rank)).toEqual([lowest, highest - 1, highest])
    const { job } = await store.jobs.submit(newJob({ timeoutMs: highest, retentionMs: highest, startBy: highest }))
    expect(await store.jobs.find(organizationId, job.id)).toMatchObject({
      timeoutMs: highest,
      retentionMs: highest,
      startBy: highest,
    })
  })
}
