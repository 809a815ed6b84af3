import { Download } from 'lucide-react'
import { useState } from 'react'
import { api, at, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { downloadFile } from '../../components/download.ts'
import { countText } from '../../components/format.ts'
import { Facts, Queried } from '../../components/page.tsx'
import { SidePanel } from '../../components/panel.tsx'
import { Time } from '../../components/time.tsx'
import { batchesText as text } from '../../text/batches.ts'
import { BatchProgress, BatchState, isLive, liveMs } from './batch-parts.tsx'

type Batch = Schema<'Batch'>

/** One batch: how far it is, what is wrong with it, and its files. */
export function BatchPanel({ id, close }: { id: string; close: () => void }) {
  const query = useAnswer(['batches', 'one', id], () => api.GET('/std/v1/batches/{id}', at({ id })), {
    refetchInterval: ({ state: { data } }) => (data && isLive(data) ? liveMs : false),
  })
  return (
    <SidePanel
      label={text.panel}
      title={<span className="font-mono text-sm break-all">{id}</span>}
      about={query.data && <BatchState batch={query.data} />}
      closeLabel={text.close}
      close={close}
    >
      <Queried query={query} gone={text.gone}>
        {batch => <Shown batch={batch} />}
      </Queried>
    </SidePanel>
  )
}

/** Saves one of the files of a batch. */
function FileButton({ file, label, primary = false }: { file: string; label: string; primary?: boolean }) {
  const { mutate, isPending } = useAction(
    () => downloadFile(file, `${file}.jsonl`),
    () => text.saved,
  )
  return <Button icon={Download} primary={primary} busy={isPending} onClick={() => mutate()} label={label} />
}

const endOf = (batch: Batch): number | null =>
  batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at

function Shown({ batch }: { batch: Batch }) {
  const { id, output_file_id: output, error_file_id: errors, input_file_id: input, usage, metadata } = batch
  const { can } = useSession()
  const [isCancelling, setCancelling] = useState(false)
  const ended = endOf(batch)
  const faults = batch.errors?.data ?? []
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap gap-2">
        {output !== null && <FileButton primary file={output} label={text.results} />}
        {errors !== null && <FileButton file={errors} label={text.errors} />}
        <FileButton file={input} label={text.input} />
        {can('user:write') && isLive(batch) && batch.status !== 'cancelling' && (
          <Button danger onClick={() => setCancelling(true)} label={text.cancel} />
        )}
      </div>
      {faults.length > 0 && (
        <div role="alert" className="bg-bad-soft text-bad rounded-md px-3 py-2">
          <h3 className="font-medium">{text.faults}</h3>
          <ul className="mt-1 space-y-1">
            {faults.map(({ line, message }) => (
              <li key={`${line} ${message}`} className="break-words">
                {text.line(line, message)}
              </li>
            ))}
          </ul>
        </div>
      )}
      <Facts
        rows={[
          [text.facts.requests, <BatchProgress key="progress" batch={batch} />],
          [text.facts.endpoint, batch.endpoint],
          [text.facts.model, batch.model],
          [
            text.facts.tokens,
            usage.total_tokens > 0 && text.tokens(countText(usage.input_tokens), countText(usage.output_tokens)),
          ],
          [text.facts.created, <Time key="created" at={batch.created_at} />],
          [text.facts.ended, ended !== null && <Time at={ended} />],
          [text.facts.until, ended === null && <Time at={batch.expires_at} />],
          [
            text.facts.metadata,
            Object.entries(metadata ?? {})
              .map(([name, value]) => `${name}: ${value}`)
              .join(', '),
          ],
        ]}
      />
      {isCancelling && (
        <Confirm
          title={text.cancelTitle}
          action={text.cancel}
          close={() => setCancelling(false)}
          act={async () => {
            await dataOf(api.POST('/std/v1/batches/{id}/cancel', at({ id })))
            announce('good', text.cancelled)
            void refresh('batches')
          }}
        >
          {text.cancelText}
        </Confirm>
      )}
    </div>
  )
}
