import { useEffect } from 'react'
import { api, at, hasEnded, type Schema, useAnswer } from './client.ts'

/** Milliseconds between reads of a job that runs, for its progress and its unfinished images. */
const progressMs = 1_000

/** The owner of what was read of a job, for all that show it. */
const keyOf = (id: string) => ['jobs', 'one', id]
const read = (id: string) => api.GET('/api/jobs/{id}', at({ id }))

interface JobOptions {
  /** False where it is the job of another organization. */
  isWanted?: boolean
  /** What a list says of it: once that has ended, the job is read again at once. */
  listed?: Pick<Schema<'JobSummary'>, 'status'>
  /** Milliseconds for which a job that has ended is not read again. */
  keptMs?: number
}

/** Reads a job with its inputs and its result, and again until it has ended. */
export function useJob(id: string, { isWanted = true, listed, keptMs = 5_000 }: JobOptions = {}) {
  const query = useAnswer(keyOf(id), () => read(id), {
    refetchInterval: ({ state: { data } }) => (data && !hasEnded(data) ? progressMs : false),
    enabled: isWanted,
    staleTime: ({ state: { data } }) => (data && hasEnded(data) ? keptMs : 0),
  })
  const { data, refetch } = query
  const isBehind = data !== undefined && !hasEnded(data) && listed !== undefined && hasEnded(listed)
  useEffect(() => {
    if (isBehind) void refetch()
  }, [isBehind, refetch])
  return query
}
