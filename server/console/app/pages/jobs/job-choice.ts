import type { Schema } from '../../api/schema.ts'

type Job = Pick<Schema<'JobSummary'>, 'id' | 'kind' | 'status'>

/** What can be done with several jobs at once. */
export type BulkAction = 'cancel' | 'retry' | 'remove'

const isLive = ({ status }: Job): boolean => status === 'pending' || status === 'processing'

/** The jobs with which an action can be done: of synchronous requests nothing is kept, so they are left out. */
export const jobsFor = (action: BulkAction, jobs: readonly Job[]): string[] =>
  jobs.flatMap(job => (job.kind === 'async' && isLive(job) === (action === 'cancel') ? [job.id] : []))

/** The chosen ids with one more, or without it. */
export function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen)
  if (!next.delete(id)) next.add(id)
  return next
}

/** Runs an action for each id, a few at a time. Resolves with how many succeeded, and the first failure. */
export async function forAll(
  ids: readonly string[],
  act: (id: string) => Promise<unknown>,
): Promise<{ done: number; failure: Error | undefined }> {
  const left = ids.values()
  let done = 0
  let failure: Error | undefined
  const run = async () => {
    for (const id of left)
      try {
        await act(id)
        done++
      } catch (thrown) {
        failure ??= thrown as Error
      }
  }
  await Promise.all([run(), run(), run(), run()])
  return { done, failure }
}
