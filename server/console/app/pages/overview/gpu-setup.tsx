import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { sizeText } from '../../components/format.ts'
import { Meter } from '../../components/meter.tsx'
import { Failed, Notice } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { overviewText } from '../../text/overview.ts'
import { shellText } from '../../text/shell.ts'

type Plan = Schema<'GpuSetup'>
const key = ['overview', 'gpu-setup']
const text = overviewText.gpuSetup

/** Says why the GPUs are not used, and offers what the built-in engine needs for them. Shows nothing where it has that. */
export function GpuSetup() {
  const { data } = useAnswer(key, () => api.GET('/api/gpu-setup'), {
    refetchInterval: ({ state }) => (state.data?.run?.status === 'running' ? 1_000 : 60_000),
  })
  const { can } = useSession()
  const [isOpen, setOpen] = useState(false)
  if (!data?.needed) return null
  const { run, installed, backend } = data
  if (run?.status === 'running') return <Progress run={run} mayStop={can('admin:write')} />
  if (run?.status === 'completed')
    return (
      <Notice kind="good" className="mb-4">
        {text.completed(run.detail ?? '')}
      </Notice>
    )
  if (installed && run === null) return null
  return (
    <>
      <Notice kind={run?.status === 'failed' ? 'bad' : 'warning'} className="mb-4">
        <span className="min-w-0 flex-1">
          {run?.status === 'failed' ? text.failed(run.detail ?? '') : sentenceOf(data)}
        </span>
        {backend !== null && !installed && can('admin:write') && (
          <Button
            small
            onClick={() => setOpen(true)}
            label={run === null ? text.offer(sizeText(data.bytes)) : text.again}
          />
        )}
      </Notice>
      {isOpen && <Accept plan={data} close={() => setOpen(false)} />}
    </>
  )
}

const sentenceOf = ({ backend, why, advice }: Plan): string =>
  backend === null ? text.blocked(why, advice) : text.unused(why)

function Progress({ run, mayStop }: { run: Schema<'GpuSetupRun'>; mayStop: boolean }) {
  const { mutate, isPending } = useAction(
    () => dataOf(api.DELETE('/api/gpu-setup')),
    () => text.stopped,
    key,
  )
  const { file, bytes, total_bytes: total } = run
  return (
    <section aria-label={text.title} className="border-line bg-surface mb-4 space-y-2 rounded-lg border p-3">
      <div className="flex items-center justify-between gap-2">
        <h2 className="font-medium">{text.running}</h2>
        {mayStop && <Button small busy={isPending} onClick={() => mutate()} label={shellText.cancel} />}
      </div>
      {file === null ? (
        <p className="text-muted text-xs">{text.starting}</p>
      ) : (
        <Meter
          label={file}
          value={text.progress(sizeText(bytes), sizeText(total))}
          whole={total}
          parts={[{ name: file, amount: bytes }]}
        />
      )}
      {file !== null && bytes === total && <p className="text-muted text-xs">{text.trying}</p>}
    </section>
  )
}

const columns: readonly Column<Plan['packages'][number]>[] = columnsOf(text.columns, {
  package: ({ name }) => <span className="break-all">{name}</span>,
  version: ({ version }) => version,
  size: { number: true, show: ({ bytes }) => sizeText(bytes) },
  license: ({ license }) => license,
})

/** What is downloaded, with the licences that a person accepts. */
function Accept({ plan, close }: { plan: Plan; close: () => void }) {
  const { why, advice, packages, bytes, source, folder } = plan
  const begin = useMutation({
    mutationFn: () => dataOf(api.POST('/api/gpu-setup')),
    onSuccess() {
      void refresh('overview')
      close()
    },
  })
  return (
    <Dialog title={text.title} close={close} wide>
      <p>{text.unused(why)}</p>
      {advice !== null && <Notice kind="warning">{advice}</Notice>}
      <Table label={text.packages} columns={columns} rows={packages} rowKey="name" />
      <p className="text-muted break-words">{text.source(sizeText(bytes), source, folder)}</p>
      {begin.error && <Failed failure={begin.error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close} label={shellText.cancel} />
        <Button primary busy={begin.isPending} onClick={() => begin.mutate()} label={text.accept} />
      </div>
    </Dialog>
  )
}
