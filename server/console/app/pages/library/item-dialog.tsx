import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Copy, Download, Recycle, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { ApiFailure, api, dataOf, useSession } from '../../api/client.ts'
import { ownUrl } from '../../components/addresses.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { dateText, durationText, sizeText } from '../../components/format.ts'
import { Notice, Queried } from '../../components/page.tsx'
import { libraryText as text } from '../../text/library.ts'
import type { LibraryItem } from './library.tsx'

/** One file: shown whole, with what made it and what can be done with it. */
export function ItemDialog({ id, close }: { id: string; close: () => void }) {
  const query = useQuery({
    queryKey: ['library', 'item', id],
    queryFn: () => dataOf(api.GET('/api/library/{id}', { params: { path: { id } } })),
  })
  const { data, error } = query
  const gone = error instanceof ApiFailure && error.status === 404
  return (
    <Dialog title={data ? data.file.file_name : text.list} close={close} wide>
      {gone ? (
        <Notice kind="warning">{text.gone}</Notice>
      ) : (
        <Queried query={query}>{item => <Item item={item} close={close} />}</Queried>
      )}
    </Dialog>
  )
}

function Item({ item, close }: { item: LibraryItem; close: () => void }) {
  const { can } = useSession()
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [deleting, setDeleting] = useState(false)
  const { id, kind, file, prompt, job_id } = item
  const url = ownUrl(file.url)
  const look = 'border-line mx-auto max-h-[50dvh] max-w-full rounded-md border'
  return (
    <>
      {kind === 'image' && <img src={url} alt={prompt || text.noPrompt} className={look} />}
      {kind === 'video' && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption
        <video src={url} controls loop aria-label={prompt || text.noPrompt} className={look} />
      )}
      {kind === 'audio' && (
        // oxlint-disable-next-line jsx-a11y/media-has-caption
        <audio src={url} controls aria-label={prompt || text.noPrompt} className="w-full" />
      )}
      <div className="flex flex-wrap gap-2">
        <a href={url} download={file.file_name} className={buttonClass({ primary: true })}>
          <Download aria-hidden className="size-4" />
          {text.download}
        </a>
        {can('user:write') && (
          <>
            <Link href={`/playground?file=${id}`} className={buttonClass()}>
              <Recycle aria-hidden className="size-4" />
              {text.reuse}
            </Link>
            <Link href={`/playground?job=${job_id}`} className={buttonClass()}>
              <Copy aria-hidden className="size-4" />
              {text.repeat}
            </Link>
            <Button danger icon={Trash2} onClick={() => setDeleting(true)}>
              {text.delete}
            </Button>
          </>
        )}
      </div>
      <Facts item={item} />
      {deleting && (
        <Confirm
          title={text.deleteTitle}
          action={text.delete}
          close={() => setDeleting(false)}
          act={async () => {
            await api.DELETE('/api/library/{id}', { params: { path: { id } } })
            announce('good', text.deleted)
            void queries.invalidateQueries({ queryKey: ['library', 'items'] })
            close()
          }}
        >
          {text.deleteSentence}
        </Confirm>
      )}
    </>
  )
}

function Facts({ item }: { item: LibraryItem }) {
  const { prompt, seed, model_id, job_id, created_at, expires_at, file, width, height, duration_seconds } = item
  const rows: [string, ReactNode][] = [
    [text.prompt, prompt || text.noPrompt],
    [text.model, model_id],
    ...(seed === null ? [] : [[text.seed, String(seed)] as [string, ReactNode]]),
    [text.size, [...(width && height ? [`${width} × ${height}`] : []), sizeText(file.file_size)].join(', ')],
    ...(duration_seconds === null ? [] : [[text.length, lengthText(item, duration_seconds)] as [string, ReactNode]]),
    [text.made, dateText(created_at)],
    [text.expires, expires_at === null ? text.forever : dateText(expires_at)],
    [
      text.job,
      <Link key="job" href={`/jobs/${job_id}`} className="text-accent font-mono text-xs break-all underline">
        {job_id}
      </Link>,
    ],
  ]
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5">
      {rows.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 break-words whitespace-pre-wrap">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function lengthText({ num_frames, fps }: LibraryItem, seconds: number): string {
  const length = durationText(seconds * 1_000)
  return num_frames && fps
    ? `${length}, ${text.frames(String(num_frames), String(Math.round(fps * 100) / 100))}`
    : length
}
