import { useEffect, useMemo } from 'react'
import { api, usePages, useSession } from '../../../api/client.ts'
import { useJob } from '../../../api/job.ts'
import { useLiveRefresh } from '../../../api/live.ts'
import { isCut, type JobSummary, playgroundSource, runsOf } from './feed.ts'
import type { Job } from './runs.ts'
import { useOutbox } from './use-outbox.ts'

/** Jobs that are read at once. */
const pageSize = 12
/** Milliseconds for which a job that has ended is not read again: the addresses of its files work for a day. */
const keptMs = 12 * 60 * 60_000

/** The runs of a task that this token has made in the playground, newest first, from the jobs of the server. */
export function useFeed(task: string) {
  const { session } = useSession()
  const key = ['playground', 'feed', task]
  const pages = usePages(key, after =>
    api.GET('/api/jobs', {
      params: {
        query: {
          task: task as Job['task'],
          token_id: session.token.id,
          kind: 'async',
          metadata: playgroundSource,
          limit: pageSize,
          after,
        },
      },
    }),
  )
  useLiveRefresh(['job.'], key)
  const outbox = useOutbox()
  const jobs = useMemo(() => pages.data?.pages.flatMap(page => page.jobs) ?? [], [pages.data])
  const unanswered = useMemo(() => outbox.entries.filter(one => one.task === task), [outbox.entries, task])
  const runs = useMemo(() => runsOf(jobs, unanswered), [jobs, unanswered])
  const { hasNextPage, isFetching, fetchNextPage } = pages
  useEffect(() => {
    if (hasNextPage && !isFetching && isCut(runs)) void fetchNextPage()
  }, [hasNextPage, isFetching, fetchNextPage, runs])
  return { pages, runs, outbox }
}

/** A job of the feed with its inputs, and with its result once it has ended. */
export const useFeedJob = (listed: JobSummary) => useJob(listed.id, { listed, keptMs })
