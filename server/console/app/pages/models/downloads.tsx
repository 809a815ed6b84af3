import { memo, useEffect } from 'react'
import { api, at, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { modelHref } from '../../components/addresses.ts'
import { useAction } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button, TextLink } from '../../components/button.tsx'
import { sizeText } from '../../components/format.ts'
import { Meter } from '../../components/meter.tsx'
import { Empty, Queried } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { modelsText } from '../../text/models.ts'
import { shellText } from '../../text/shell.ts'

type Download = Schema<'ModelDownload'>
const kinds = { running: 'active', completed: 'good', failed: 'bad', cancelled: 'plain' } as const
const key = ['models', 'downloads']

/** The downloads since the server started; read every second while one runs. */
export function Downloads({ add }: { add: (model: string) => void }) {
  const query = useAnswer(key, () => api.GET('/api/model-downloads'), {
    refetchInterval: ({ state: { data } }) =>
      data?.downloads.some(({ status }) => status === 'running') ? 1_000 : 10_000,
  })
  const added = query.data?.downloads.filter(({ status }) => status === 'completed').length
  // A download that has ended has added a model, which the list of tasks names.
  useEffect(() => {
    if (added) void refresh('tasks')
  }, [added])
  return (
    <Queried query={query}>
      {({ downloads }) =>
        downloads.length === 0 ? (
          <Empty title={modelsText.noDownloads}>{modelsText.noDownloadsNext}</Empty>
        ) : (
          <ul
            aria-label={modelsText.downloads}
            className="border-line bg-surface divide-line divide-y rounded-lg border"
          >
            {downloads.map(download => (
              <Row key={download.id} download={download} add={add} />
            ))}
          </ul>
        )
      }
    </Queried>
  )
}

const Row = memo(function Row({ download, add }: { download: Download; add: (model: string) => void }) {
  const { model, model_id: id, status, file, bytes, total_bytes: total, error, created_at: at } = download
  const { can } = useSession()
  const isStopped = status === 'failed' || status === 'cancelled'
  return (
    <li className="space-y-2 px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="min-w-0 flex-1 font-medium break-words">{model}</span>
        <Badge kind={kinds[status]}>{modelsText.downloadStates[status]}</Badge>
        <span className="text-muted text-xs">
          <Time at={at} />
        </span>
        {id !== null && <TextLink href={modelHref(id)} label={modelsText.openModel} />}
        {can('admin:write') && status === 'running' && <Cancel download={download} />}
        {can('admin:write') && isStopped && <Button small onClick={() => add(model)} label={modelsText.repeat} />}
      </div>
      {status === 'running' &&
        (file === null ? (
          <p className="text-muted text-xs">{modelsText.starting}</p>
        ) : (
          <Meter
            label={file}
            value={modelsText.downloadProgress(sizeText(bytes), sizeText(total))}
            whole={total}
            parts={[{ name: file, amount: bytes }]}
          />
        ))}
      {error && <p className="text-bad text-sm">{error.message}</p>}
    </li>
  )
})

function Cancel({ download: { id, model } }: { download: Download }) {
  const { mutate, isPending } = useAction(
    () => dataOf(api.DELETE('/api/model-downloads/{id}', at({ id }))),
    () => modelsText.cancelled(model),
    key,
  )
  return (
    <Button
      small
      busy={isPending}
      aria-label={modelsText.cancelDownload(model)}
      onClick={() => mutate()}
      label={shellText.cancel}
    />
  )
}
