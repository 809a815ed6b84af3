import { useQueryClient } from '@tanstack/react-query'
import { Copy, Download, Recycle, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { api, useSession } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { ownUrl } from '../../components/addresses.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { dateText, durationText, sizeText } from '../../components/format.ts'
import { Facts, Queried } from '../../components/page.tsx'
import { Media } from '../../components/result/media.tsx'
import { libraryText as text } from '../../text/library.ts'
import type { LibraryItem } from './library.tsx'

/** One file: shown whole, with what made it and what can be done with it. */
export function ItemDialog({ id, close }: { id: string; close: () => void }) {
  const query = useAnswer(['library', 'item', id], () => api.GET('/api/library/{id}', { params: { path: { id } } }))
  return (
    <Dialog title={query.data?.file.file_name ?? text.list} close={close} wide>
      <Queried query={query} gone={text.gone}>
        {item => <Item item={item} close={close} />}
      </Queried>
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
  return (
    <>
      <Media
        kind={kind}
        url={url}
        label={prompt || text.noPrompt}
        className="border-line mx-auto max-h-[50dvh] max-w-full rounded-md border"
        whole
      />
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
      <ItemFacts item={item} />
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

function ItemFacts({ item }: { item: LibraryItem }) {
  const { prompt, seed, model_id, job_id, created_at, expires_at, file, width, height, duration_seconds } = item
  return (
    <Facts
      className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5 whitespace-pre-wrap"
      rows={[
        [text.prompt, prompt || text.noPrompt],
        [text.model, model_id],
        [text.seed, seed],
        [text.size, `${width && height ? `${width} × ${height}, ` : ''}${sizeText(file.file_size)}`],
        [text.length, duration_seconds !== null && lengthText(item, duration_seconds)],
        [text.made, dateText(created_at)],
        [text.expires, expires_at === null ? text.forever : dateText(expires_at)],
        [
          text.job,
          <Link key="job" href={`/jobs/${job_id}`} className="text-accent font-mono text-xs break-all underline">
            {job_id}
          </Link>,
        ],
      ]}
    />
  )
}

function lengthText({ num_frames, fps }: LibraryItem, seconds: number): string {
  const length = durationText(seconds * 1_000)
  return num_frames && fps
    ? `${length}, ${text.frames(String(num_frames), String(Math.round(fps * 100) / 100))}`
    : length
}
