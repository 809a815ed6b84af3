import { FolderInput } from 'lucide-react'
import { Link, useSearchParams } from 'wouter'
import { IconButton } from '../../../components/button.tsx'
import { Time } from '../../../components/time.tsx'
import { chatText as text } from '../../../text/chat.ts'
import { folderText } from '../../../text/folders.ts'
import { chatHref } from '../chat-href.ts'
import type { ListedConversation, Place } from '../store/stored.ts'
import { dragProps } from './drag.ts'

/** What the rows of a list share. */
export interface RowFacts {
  /** The id of the conversation that is shown. */
  current: string | undefined
  /** The place that is shown, because new conversations are kept elsewhere. */
  other: Place | undefined
  open: () => void
  /** Asks where to move a conversation. */
  move: (conversation: ListedConversation) => void
}

/** The conversations of a list. */
export const Rows = ({ conversations, ...facts }: RowFacts & { conversations: readonly ListedConversation[] }) => (
  <ul>
    {conversations.map(one => (
      <Row key={one.id} conversation={one} {...facts} />
    ))}
  </ul>
)

function Row({ conversation, current, other, open, move }: RowFacts & { conversation: ListedConversation }) {
  const { id, title, place, at } = conversation
  const [params] = useSearchParams()
  const isCurrent = id === current
  return (
    <li
      className={`group relative flex items-center rounded-md ${isCurrent ? 'bg-accent-soft' : 'hover:bg-raised focus-within:bg-raised'}`}
    >
      <Link
        href={chatHref(params, id)}
        onClick={open}
        aria-current={isCurrent ? 'page' : undefined}
        className="block min-w-0 flex-1 px-2 py-1.5 focus-visible:-outline-offset-2"
        {...dragProps(id)}
      >
        <span className="block truncate">{title || text.untitled}</span>
        <span className="text-muted block text-xs">
          <Time at={at} />
          {place === other && ` · ${text.places[place]}`}
        </span>
      </Link>
      <IconButton
        icon={FolderInput}
        label={folderText.moveOne(title || text.untitled)}
        onClick={() => move(conversation)}
        className="opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100"
      />
    </li>
  )
}
