import { ChevronRight, Folder as FolderIcon, Pencil, Trash2 } from 'lucide-react'
import { useId, useState } from 'react'
import { IconButton } from '../../../components/button.tsx'
import { Failed, Loading, MoreButton } from '../../../components/page.tsx'
import { folderText as text } from '../../../text/folders.ts'
import { presetFolder } from '../store/stored.ts'
import { useDrop } from './drag.ts'
import { type RowFacts, Rows } from './row.tsx'
import { useListed } from './use-listed.ts'

interface FolderProps extends RowFacts {
  name: string
  /** Moves a conversation here, by its id. */
  take: (id: string) => void
  rename: () => void
  remove: () => void
}

/** A folder, whose conversations are read when it is opened. */
export function Folder({ name, take, rename, remove, ...rows }: FolderProps) {
  const id = useId()
  const [isOpen, open] = useState(false)
  // Presets are no conversations: the folder that they are in is shown for others in it.
  const isOfPresets = name === presetFolder
  const { query, conversations } = useListed({ words: '', folder: name, isWanted: isOpen || isOfPresets })
  const { isOver, dropProps } = useDrop(take)
  if (isOfPresets && conversations.length === 0) return null
  return (
    <section aria-label={text.folder(name)} {...(isOfPresets ? {} : dropProps)}>
      <div
        className={`hover:bg-raised group flex items-center rounded-md ${isOver ? 'outline-accent outline-2 outline-dashed' : ''}`}
      >
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          onClick={() => open(!isOpen)}
          className="flex min-h-8 min-w-0 flex-1 items-center gap-1.5 px-2 text-left focus-visible:-outline-offset-2"
        >
          <ChevronRight aria-hidden className={`text-muted size-4 shrink-0 ${isOpen ? 'rotate-90' : ''}`} />
          <FolderIcon aria-hidden className="text-muted size-4 shrink-0" />
          <span className="truncate">{name}</span>
        </button>
        {!isOfPresets && (
          <div className="flex opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100">
            <IconButton icon={Pencil} label={text.rename(name)} onClick={rename} />
            <IconButton icon={Trash2} label={text.remove(name)} onClick={remove} />
          </div>
        )}
      </div>
      {isOpen && (
        <div id={id} className="border-line ml-3.5 border-l pl-1">
          {query.error && <Failed failure={query.error} retry={() => void query.refetch()} />}
          {query.isPending ? <Loading lines={2} /> : <Rows conversations={conversations} {...rows} />}
          <MoreButton query={query} className="mt-1" />
        </div>
      )}
    </section>
  )
}
