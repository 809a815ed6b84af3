import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Ban, RotateCcw, SquarePen, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { api, dataOf, useSession } from '../../api/client.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { jobsText } from '../../text/jobs.ts'
import { hasEnded, type Job } from './job.ts'

/** What can be done with a job in its state. */
export function JobActions({ job }: { job: Job }) {
  const { can } = useSession()
  const [, go] = useLocation()
  const announce = useAnnounce()
  const queries = useQueryClient()
  const [removing, setRemoving] = useState(false)
  const params = { path: { id: job.id } }
  const failed = (failure: Error) => announce('bad', failure.message)
  const refresh = () => queries.invalidateQueries({ queryKey: ['jobs'] })
  const cancel = useMutation({
    mutationFn: () => dataOf(api.POST('/api/jobs/{id}/cancel', { params })),
    onSuccess: () => {
      announce('good', jobsText.cancelled)
      return refresh()
    },
    onError: failed,
  })
  const retry = useMutation({
    mutationFn: () => dataOf(api.POST('/api/jobs/{id}/retry', { params })),
    onSuccess: created => {
      announce('good', jobsText.retried)
      go(`/jobs/${created.id}`)
    },
    onError: failed,
  })
  if (!can('user:write')) return null
  const ended = hasEnded(job)
  return (
    <>
      {!ended && job.kind === 'async' && (
        <Button danger icon={Ban} busy={cancel.isPending} onClick={() => cancel.mutate()}>
          {jobsText.cancel}
        </Button>
      )}
      {ended && job.kind === 'async' && (
        <Button icon={RotateCcw} busy={retry.isPending} onClick={() => retry.mutate()}>
          {jobsText.retry}
        </Button>
      )}
      {job.inputs !== null && job.inputs !== undefined && (
        <Link href={`/playground?job=${job.id}`} className={buttonClass()}>
          <SquarePen aria-hidden className="size-4" />
          {jobsText.repeat}
        </Link>
      )}
      {ended && job.kind === 'async' && (
        <Button danger icon={Trash2} onClick={() => setRemoving(true)}>
          {jobsText.remove}
        </Button>
      )}
      {removing && (
        <Confirm
          title={jobsText.removeTitle}
          action={jobsText.remove}
          act={async () => {
            await api.DELETE('/api/jobs/{id}', { params })
            announce('good', jobsText.removed)
            void queries.invalidateQueries({ queryKey: ['jobs', 'list'] })
            go('/jobs')
          }}
          close={() => setRemoving(false)}
        >
          {jobsText.removeHelp}
        </Confirm>
      )}
    </>
  )
}
