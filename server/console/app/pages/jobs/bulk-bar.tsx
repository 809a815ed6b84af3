import { Ban, Columns2, RotateCcw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, at, refresh, type Schema, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Button, ButtonLink } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { jobsText } from '../../text/jobs.ts'
import { type BulkAction, forAll, jobsFor } from './job-choice.ts'

const acts: Readonly<Record<BulkAction, (id: string) => Promise<unknown>>> = {
  cancel: id => api.POST('/api/jobs/{id}/cancel', at({ id })),
  retry: id => api.POST('/api/jobs/{id}/retry', at({ id })),
  remove: id => api.DELETE('/api/jobs/{id}', at({ id })),
}

/** Does one thing with several jobs, and announces how many it was. Rejects with the first failure. */
async function doWithAll(action: BulkAction, ids: readonly string[]): Promise<string> {
  const { done, failure } = await forAll(ids, acts[action])
  // Also after a failure: some jobs have changed.
  void refresh('jobs', 'list')
  if (failure) throw new Error(done === 0 ? failure.message : jobsText.bulk.some(done, ids.length, failure.message))
  return jobsText.bulk.done[action](done)
}

/** What can be done with the jobs that were chosen in the list; nothing if none was. */
export function BulkBar({ jobs, clear }: { jobs: readonly Schema<'ListedJob'>[]; clear: () => void }) {
  const { can, session } = useSession()
  const [removing, setRemoving] = useState(false)
  const { mutate, isPending } = useAction(
    ({ action, ids }: { action: BulkAction; ids: readonly string[] }) => doWithAll(action, ids),
    sentence => {
      clear()
      return sentence
    },
  )
  if (jobs.length === 0) return null
  const own = jobs.filter(job => job.organization_id === session.organization.id)
  const button = (action: BulkAction, icon: typeof Ban, act: (ids: string[]) => void) => {
    const ids = jobsFor(action, own)
    if (ids.length === 0 || !can('user:write')) return null
    return (
      <Button
        small
        danger={action !== 'retry'}
        icon={icon}
        busy={isPending}
        onClick={() => act(ids)}
        label={jobsText.bulk[action](ids.length)}
      />
    )
  }
  const [first, second] = own
  return (
    <div
      role="toolbar"
      aria-label={jobsText.bulk.label}
      className="bg-accent-soft mb-2 flex min-h-9 flex-wrap items-center gap-2 rounded-md px-2 py-1"
    >
      <span className="font-medium">{jobsText.bulk.chosen(jobs.length)}</span>
      {button('cancel', Ban, ids => mutate({ action: 'cancel', ids }))}
      {button('retry', RotateCcw, ids => mutate({ action: 'retry', ids }))}
      {button('remove', Trash2, () => setRemoving(true))}
      {own.length === 2 && jobs.length === 2 && (
        <ButtonLink
          small
          href={`/jobs/compare?first=${first!.id}&second=${second!.id}`}
          icon={Columns2}
          label={jobsText.bulk.compare}
        />
      )}
      <Button small onClick={clear} label={jobsText.bulk.clear} />
      {removing && (
        <Confirm
          title={jobsText.bulk.removeTitle(jobsFor('remove', own).length)}
          action={jobsText.bulk.remove(jobsFor('remove', own).length)}
          act={async () => {
            announce('good', await doWithAll('remove', jobsFor('remove', own)))
            clear()
          }}
          close={() => setRemoving(false)}
        >
          {jobsText.bulk.removeHelp}
        </Confirm>
      )}
    </div>
  )
}
