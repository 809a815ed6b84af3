import { Ban, RotateCcw, SquarePen, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, dataOf, hasEnded, refresh, type Schema, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Button, ButtonLink } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { jobsText } from '../../text/jobs.ts'

/** What can be done with a job in its state. `open` shows the job that took its place; undefined: it is deleted. */
export function JobActions({ job, open }: { job: Schema<'Job'>; open: (id: string | undefined) => void }) {
  const { can } = useSession()
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
      open(created.id)
      return jobsText.retried
    },
    ['jobs', 'list'],
  )
  if (!can('user:write')) return null
  const ended = hasEnded(job)
  return (
    <>
      {!ended && job.kind === 'async' && (
        <Button danger icon={Ban} busy={cancel.isPending} onClick={() => cancel.mutate()} label={jobsText.cancel} />
      )}
      {ended && job.kind === 'async' && (
        <Button icon={RotateCcw} busy={retry.isPending} onClick={() => retry.mutate()} label={jobsText.retry} />
      )}
      {job.inputs !== null && job.inputs !== undefined && (
        <ButtonLink href={`/playground?job=${job.id}`} icon={SquarePen} label={jobsText.repeat} />
      )}
      {ended && job.kind === 'async' && (
        <Button danger icon={Trash2} onClick={() => setRemoving(true)} label={jobsText.remove} />
      )}
      {removing && (
        <Confirm
          title={jobsText.removeTitle}
          action={jobsText.remove}
          act={async () => {
            await api.DELETE('/api/jobs/{id}', { params })
            announce('good', jobsText.removed)
            void refresh('jobs', 'list')
            open(undefined)
          }}
          close={() => setRemoving(false)}
        >
          {jobsText.removeHelp}
        </Confirm>
      )}
    </>
  )
}
