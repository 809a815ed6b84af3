import { useQuery } from '@tanstack/react-query'
import { FileText } from 'lucide-react'
import { isGone, send } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { downloadFile } from '../../../components/download.ts'
import { Media } from '../../../components/result/media.tsx'
import { chatText as text } from '../../../text/chat.ts'
import { previewOf, rememberPreview } from '../../playground/form/files.tsx'
import type { Attachment } from './attachment.ts'

/** The files of a message that was sent: images and audio as they are, texts by their names. */
export const SentFiles = ({ files }: { files: readonly Attachment[] }) => (
  <div className="flex max-w-full flex-wrap items-end justify-end gap-2">
    {files.map(file =>
      file.kind === 'text' ? <SentText key={file.id} file={file} /> : <SentMedium key={file.id} file={file} />,
    )}
  </div>
)

const chipClass = 'border-line bg-surface flex max-w-full items-center gap-2 rounded-md border px-2 py-1.5 text-xs'

function SentText({ file: { id, name } }: { file: Attachment }) {
  const save = () => downloadFile(id, name).catch((failure: Error) => announce('bad', failure.message))
  return (
    <button
      type="button"
      title={text.downloadFile}
      onClick={() => void save()}
      className={`${chipClass} hover:bg-raised`}
    >
      <FileText aria-hidden className="text-kind-text size-4 shrink-0" />
      <span className="max-w-60 truncate">{name}</span>
    </button>
  )
}

function SentMedium({ file: { id, kind, name } }: { file: Attachment }) {
  const known = previewOf(id)
  const isStored = id.startsWith('file-')
  const { data: url = known, error } = useQuery({
    queryKey: ['chat', 'file', id],
    // An element of the page could not load it: the session counts only for requests of the console.
    queryFn: async () => {
      const answer = await send(`/std/v1/files/${encodeURIComponent(id)}/content`)
      const loaded = URL.createObjectURL(await answer.blob())
      rememberPreview(id, loaded)
      return loaded
    },
    enabled: known === undefined && isStored,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  if (error || (url === undefined && !isStored))
    return (
      <p className={`${chipClass} text-muted`}>
        <span className="min-w-0 break-all">
          {error ? (isGone(error) ? text.fileGone(name) : error.message) : id.slice(0, 200)}
        </span>
      </p>
    )
  if (url === undefined) return <div aria-hidden className="bg-raised size-24 animate-pulse rounded-md" />
  return (
    <Media
      whole
      kind={kind === 'audio' ? 'audio' : 'image'}
      url={url}
      label={text.attached(name)}
      className="border-line max-h-48 max-w-full rounded-md border"
      audioClass="w-72 max-w-full"
    />
  )
}
