import { MessageSquarePlus, Undo2, X } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { useSession } from '../../../api/client.ts'
import { useAction } from '../../../components/announcements.tsx'
import { Button, IconButton } from '../../../components/button.tsx'
import { SearchField } from '../../../components/fields.tsx'
import { Failed, Loading, MoreButton, Notice } from '../../../components/page.tsx'
import { useSearch } from '../../../components/use-address.ts'
import { chatText as text } from '../../../text/chat.ts'
import { folderText } from '../../../text/folders.ts'
import { moveTo } from '../conversation/registry.ts'
import type { Removed } from '../heading.tsx'
import type { ListedConversation, Place } from '../store/stored.ts'
import { useDrop } from './drag.ts'
import { Folder } from './folder.tsx'
import { MoveDialog, RemoveFolder, RenameFolder } from './folder-dialogs.tsx'
import { Rows } from './row.tsx'
import { useListed } from './use-listed.ts'

interface ConversationListProps {
  /** The id of the one that is shown. */
  current: string | undefined
  begin: () => void
  /** Shows a conversation again, where there is no room for both. */
  hide: () => void
  /** The one that was deleted last, which can be brought back. */
  removed: Removed | undefined
  undo: () => void
}

/** What a dialog is open for. */
type Asked = { move: ListedConversation } | { rename: string } | { remove: string }

/** The conversations of the person, wherever they are kept: folders first, then those in none. A search finds them in all. */
export function ConversationList({ current, begin, hide, removed, undo }: ConversationListProps) {
  const { session } = useSession()
  const [words, search] = useSearch()
  const wanted = useDeferredValue(words)
  const isSearching = wanted.trim() !== ''
  const { query, conversations, folders, serverFolders, stored, hasOnServer, hasInBrowser } = useListed(
    isSearching ? { words: wanted } : { words: '', folder: null },
  )
  const [asked, ask] = useState<Asked>()
  const move = useAction(
    async ({ id, folder }: { id: string; folder: string | null }) => moveTo(id, folder, session.token.id),
    (_, { folder }) => folderText.moved(folder),
    ['chat', 'list'],
  )
  const takeTo = (folder: string | null) => (id: string) => move.mutate({ id, folder })
  const { isOver, dropProps } = useDrop(takeTo(null))
  const other: Place | undefined = stored === undefined ? undefined : stored ? 'browser' : 'server'
  const hasOther = other === 'browser' ? hasInBrowser : hasOnServer
  const rows = { current, other, open: hide, move: (one: ListedConversation) => ask({ move: one }) }
  const ofFolder = (name: string) => ({ isOnServer: serverFolders.includes(name), close: () => ask(undefined) })
  const shownFolders = isSearching ? [] : folders
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-3">
      <div className="flex gap-2">
        <Button className="flex-1" icon={MessageSquarePlus} onClick={begin} label={text.begin} />
        <IconButton className="md:hidden" icon={X} label={text.hideList} onClick={hide} />
      </div>
      <div className="flex">
        <SearchField label={text.search} value={words} change={search} />
      </div>
      {removed && (
        <Notice kind="info">
          <span className="min-w-0 flex-1 text-xs">{text.deleted(removed.conversation.title || text.untitled)}</span>
          <Button small icon={Undo2} onClick={undo} label={text.undo} />
        </Notice>
      )}
      {query.error && <Failed failure={query.error} retry={() => void query.refetch()} />}
      <nav aria-label={text.conversations} className="min-h-0 flex-1 overflow-y-auto">
        {query.isPending ? (
          <Loading lines={4} />
        ) : conversations.length + shownFolders.length === 0 ? (
          <p className="text-muted px-2 py-4 text-xs">{words === '' ? text.none : text.noneFound}</p>
        ) : (
          <>
            {shownFolders.map(name => (
              <Folder
                key={name}
                name={name}
                take={takeTo(name)}
                rename={() => ask({ rename: name })}
                remove={() => ask({ remove: name })}
                {...rows}
              />
            ))}
            <div
              {...(isSearching ? {} : dropProps)}
              className={`min-h-12 rounded-md ${isOver ? 'outline-accent outline-2 -outline-offset-2 outline-dashed' : ''}`}
            >
              <Rows conversations={conversations} {...rows} />
            </div>
          </>
        )}
        <MoreButton query={query} className="mt-2" />
      </nav>
      {stored !== undefined && (
        <p className="text-muted text-xs">
          {stored ? text.onServer : text.inBrowser(session.organization.name)}
          {hasOther && ` ${stored ? text.alsoInBrowser : text.alsoOnServer}`}
        </p>
      )}
      {asked && 'move' in asked && (
        <MoveDialog
          conversation={asked.move}
          folders={folders}
          move={(id, folder) => move.mutateAsync({ id, folder })}
          close={() => ask(undefined)}
        />
      )}
      {asked && 'rename' in asked && <RenameFolder folder={asked.rename} {...ofFolder(asked.rename)} />}
      {asked && 'remove' in asked && <RemoveFolder folder={asked.remove} {...ofFolder(asked.remove)} />}
    </div>
  )
}
