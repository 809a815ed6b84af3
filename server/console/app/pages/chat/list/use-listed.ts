import { useQuery } from '@tanstack/react-query'
import { api, usePages, useSession } from '../../../api/client.ts'
import { browserStore } from '../store/browser-store.ts'
import { listedOf } from '../store/server-store.ts'
import { isPreset, type ListedConversation } from '../store/stored.ts'

interface Wanted {
  /** Words that the title or a message has; empty: any. */
  words: string
  /** Null: only those in no folder; undefined: all. */
  folder?: string | null
  isWanted?: boolean
}

/** The conversations of the person, wherever they are kept; those changed last come first. */
export function useListed({ words, folder, isWanted = true }: Wanted) {
  const { session } = useSession()
  const token = session.token.id
  const query = usePages(
    ['chat', 'list', 'server', words, folder ?? '', folder === undefined],
    after => {
      const wanted = { limit: 50, search: words || undefined, folder: folder === null ? '' : folder, after }
      return api.GET('/api/conversations', { params: { query: wanted } })
    },
    true,
    isWanted,
  )
  const { data: inBrowser = [] } = useQuery({
    queryKey: ['chat', 'list', 'browser', words],
    queryFn: () => browserStore(token).list(words),
  })
  const pages = query.data?.pages
  const onServer =
    pages?.flatMap(({ conversations }) => conversations.filter(one => !isPreset(one)).map(listedOf)) ?? []
  const own = inBrowser.filter(one => folder === undefined || one.folder === folder)
  const conversations: ListedConversation[] = [...onServer, ...own].toSorted((a, b) => b.at - a.at)
  const serverFolders = pages?.at(-1)?.folders ?? []
  const folders = new Set([...serverFolders, ...inBrowser.flatMap(one => (one.folder === null ? [] : [one.folder]))])
  return {
    query,
    conversations,
    hasOnServer: onServer.length > 0,
    hasInBrowser: own.length > 0,
    /** Those that are on the server. */
    serverFolders,
    /** Names of all folders of the person. */
    folders: [...folders].toSorted((a, b) => a.localeCompare(b)),
    /** Whether new ones are kept on the server; undefined before it is known. */
    stored: pages?.at(-1)?.stored,
  }
}
