import { useQuery } from '@tanstack/react-query'
import { MessageSquarePlus, Undo2, X } from 'lucide-react'
import { useDeferredValue } from 'react'
import { Link, useSearchParams } from 'wouter'
import { api, usePages, useSession } from '../../api/client.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { SearchField } from '../../components/fields.tsx'
import { Failed, Loading, MoreButton, Notice } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useSearch } from '../../components/use-address.ts'
import { chatText as text } from '../../text/chat.ts'
import { chatHref } from './chat-href.ts'
import type { Removed } from './heading.tsx'
import { browserStore } from './store/browser-store.ts'
import { listedOf } from './store/server-store.ts'
import { isPreset, type ListedConversation, type Place } from './store/stored.ts'

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

/** The conversations of the person, wherever they are kept; those changed last come first. */
export function ConversationList({ current, begin, hide, removed, undo }: ConversationListProps) {
  const { session } = useSession()
  const [words, search] = useSearch()
  const wanted = useDeferredValue(words)
  const query = usePages(
    ['chat', 'list', 'server', wanted],
    after => api.GET('/api/conversations', { params: { query: { limit: 50, search: wanted || undefined, after } } }),
    true,
  )
  const { data: own = [] } = useQuery({
    queryKey: ['chat', 'list', 'browser', wanted],
    queryFn: () => browserStore(session.token.id).list(wanted),
  })
  const pages = query.data?.pages
  const stored = pages?.at(-1)?.stored
  const onServer =
    pages?.flatMap(({ conversations }) => conversations.filter(one => !isPreset(one)).map(listedOf)) ?? []
  const all = [...onServer, ...own].toSorted((a, b) => b.at - a.at)
  const other: Place = stored ? 'browser' : 'server'
  const hasOther = stored === undefined ? false : (stored ? own : onServer).length > 0
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
        ) : all.length === 0 ? (
          <p className="text-muted px-2 py-4 text-xs">{words === '' ? text.none : text.noneFound}</p>
        ) : (
          <ul>
            {all.map(one => (
              <Row
                key={one.id}
                conversation={one}
                isCurrent={one.id === current}
                mark={one.place === other}
                open={hide}
              />
            ))}
          </ul>
        )}
        <MoreButton query={query} className="mt-2" />
      </nav>
      {stored !== undefined && (
        <p className="text-muted text-xs">
          {stored ? text.onServer : text.inBrowser(session.organization.name)}
          {hasOther && ` ${stored ? text.alsoInBrowser : text.alsoOnServer}`}
        </p>
      )}
    </div>
  )
}

interface RowProps {
  conversation: ListedConversation
  isCurrent: boolean
  /** Whether its place is shown, because new conversations are kept elsewhere. */
  mark: boolean
  open: () => void
}

function Row({ conversation: { id, title, place, at }, isCurrent, mark, open }: RowProps) {
  const [params] = useSearchParams()
  return (
    <li>
      <Link
        href={chatHref(params, id)}
        onClick={open}
        aria-current={isCurrent ? 'page' : undefined}
        className={`block rounded-md px-2 py-1.5 ${isCurrent ? 'bg-accent-soft' : 'hover:bg-raised'}`}
      >
        <span className="block truncate">{title || text.untitled}</span>
        <span className="text-muted block text-xs">
          <Time at={at} />
          {mark && ` · ${text.places[place]}`}
        </span>
      </Link>
    </li>
  )
}
