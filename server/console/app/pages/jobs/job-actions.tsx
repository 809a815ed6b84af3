import { useQueryClient } from '@tanstack/react-query'
import { Ban, RotateCcw, SquarePen, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { hasEnded } from '../../api/queries.ts'
import { useAction, useAnnounce } from '../../components/announcements.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { jobsText } from '../../text/jobs.ts'

/** What can be done with a job in its state. */
export function JobActions({ job }: { job: Schema<'Job'> }) {
  const { can } = useSession()
  const [, go] = useLocation()
  const announce = useAnnounce()
  const queries = useQueryClient()
  const [removing, setRemoving] = useState(false)
  const params = { path: { id: job.id } }
  const cancel = useAction(
    () => dataOf(api.POST('/api/jobs/{id}/cancel', { params })),
    () => jobsText.cancelled,
    ['jobs'],
  )
  const retry = useAction(
    () => dataOf(api.POST('/api/jobs/{id}/retry', { params })),
    created => {
      go(`/jobs/${created.id}`)
      return jobsText.retried
    },
  )
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
