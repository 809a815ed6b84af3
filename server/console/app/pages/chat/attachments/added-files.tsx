import { FileText, LoaderCircle, Volume2, X } from 'lucide-react'
import { IconButton } from '../../../components/button.tsx'
import { Notice } from '../../../components/page.tsx'
import { chatText as text } from '../../../text/chat.ts'
import type { Attachments } from './use-attachments.ts'

/** The files of the next message, each with a button that removes it. */
export const AddedFiles = ({ attachments: { added, lacking, remove } }: { attachments: Attachments }) => (
  <>
    {added.length > 0 && (
      <ul aria-label={text.addedFiles} className="flex flex-wrap gap-2">
        {added.map(({ key, id, kind, name, preview }) => (
          <li
            key={key}
            aria-busy={id === undefined}
            className="border-line bg-surface flex max-w-full items-center gap-2 rounded-md border p-1"
          >
            {id === undefined ? (
              <LoaderCircle aria-label={text.uploading} className="text-muted m-2 size-4 animate-spin" />
            ) : kind === 'image' ? (
              <img src={preview} alt={text.attached(name)} className="size-10 rounded object-cover" />
            ) : kind === 'audio' ? (
              <Volume2 aria-hidden className="text-kind-audio m-2 size-4 shrink-0" />
            ) : (
              <FileText aria-hidden className="text-kind-text m-2 size-4 shrink-0" />
            )}
            <span className="max-w-48 truncate text-xs">{name}</span>
            <IconButton icon={X} label={text.removeFile(name)} onClick={() => remove(key)} />
          </li>
        ))}
      </ul>
    )}
    {lacking && <Notice kind="warning">{text.notTaken[lacking]}</Notice>}
  </>
)
