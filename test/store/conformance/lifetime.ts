import { expect, test } from 'vitest'
import type { Subject } from './conformance.ts'
import { newExecution } from './drawn.ts'
import { completed, newJob, organizationId } from './records.ts'

/** What closing a store means. */
export function lifetimeRules({ fresh }: Subject): void {
  test('a closed store refuses every call with that reason', async () => {
    await using opened = await fresh()
    await opened.store.close()
    await expect(opened.store.jobs.submit(newJob())).rejects.toMatchObject({ code: 'shutting_down' })
    await expect(opened.store.jobs.counts()).rejects.toMatchObject({ code: 'shutting_down' })
  })

  test('a store closed in order has no running jobs, and continues after it is opened again', async () => {
    const { modelId: _, ...made } = newExecution({ nodes: { a: ['b'], b: [] } })
    const jobId = made.nodes[0]!.jobId
    await using opened = await fresh()
    const { store: before, place } = opened
    await before.executions.create(made)
    await before.jobs.claim(organizationId, jobId, Date.now())
    expect((await before.executions.summary(organizationId, made.id))!.progress.running).toBe(1)
    await before.close()
    expect(await place.findings()).toEqual([])
    const after = await place.open()
    try {
      expect(after.recovery).toMatchObject({ requeued: 0, crashed: 0 })
      const now = async () => (await after.executions.summary(organizationId, made.id))!
      expect(await now()).toMatchObject({ status: 'running', progress: { running: 0 } })
      const claimed = await after.jobs.claim(organizationId, jobId, Date.now())
      expect(claimed).toMatchObject({ attempt: 1, claims: 2, boot: after.recovery.bootId })
      await after.jobs.settle(claimed!, completed())
      expect((await now()).progress).toMatchObject({ running: 0, completed: 1 })
    } finally {
      await after.close()
    }
  })
}
