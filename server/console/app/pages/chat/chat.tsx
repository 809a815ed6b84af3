import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation, useRoute, useSearchParams } from 'wouter'
import { api, at, dataOf, refresh, tasksQuery, useModels, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { ButtonLink } from '../../components/button.tsx'
import { Empty, Failed, Loading, PageHeading, Queried } from '../../components/page.tsx'
import { chatText as text } from '../../text/chat.ts'
import { shellText } from '../../text/shell.ts'
import { type ModelChoice, modelChoice, type TaskChoice } from '../playground/choices.ts'
import { chatHref } from './chat-href.ts'
import type { OpenedConversation } from './conversation/opened.ts'
import { forgetFresh, isDropped, openedWith, openFresh, openRead, storeAt, storeOf } from './conversation/registry.ts'
import type { Removed } from './heading.tsx'
import { ConversationList } from './list/list.tsx'
import { conversationOf } from './message/api-messages.ts'
import { OpenedView } from './opened-view.tsx'
import { chained, takeOver } from './store/browser-store.ts'
import { type Conversation, emptyConversation } from './store/stored.ts'

/** Conversations with models. */
export default function Chat() {
  const tasks = useQuery(tasksQuery)
  const models = useModels({ refetchInterval: 60_000, staleTime: 60_000 })
  const { session } = useSession()
  useState(() => takeOver(session.token.id))
  return (
    <Queried query={tasks} lines={6}>
      {({ tasks: all }) => (
        <Queried query={models} lines={6}>
          {({ models: states }) => <Offered tasks={all} models={states.map(modelChoice)} />}
        </Queried>
      )}
    </Queried>
  )
}

function Offered({ tasks, models }: { tasks: readonly TaskChoice[]; models: readonly ModelChoice[] }) {
  const task = tasks.find(({ form }) => form.panel === 'conversation')
  const able = models.filter(({ id }) => task?.models.includes(id))
  if (!task || able.length === 0)
    return (
      <>
        <PageHeading title={shellText.pages.chat} />
        <Empty title={text.noModels}>
          <p>{text.noModelsHint}</p>
          <ButtonLink href="/models" label={text.toModels} />
        </Empty>
      </>
    )
  return <Conversations task={task} able={able} />
}

/** The list of conversations, and one of them. */
function Conversations({ task, able }: { task: TaskChoice; able: readonly ModelChoice[] }) {
  const { session } = useSession()
  const token = session.token.id
  const [, params] = useRoute('/chat/:id')
  const [search] = useSearchParams()
  const [, go] = useLocation()
  const [isListShown, showList] = useState(false)
  const [removed, setRemoved] = useState<Removed>()
  const { opened, query } = useOpened(params?.id, token)
  const begin = () => {
    forgetFresh()
    showList(false)
    go(chatHref(search))
  }
  const undo = async () => {
    const { conversation, place } = removed!
    setRemoved(undefined)
    try {
      const { id } = await storeAt(place, token).create(conversation)
      void refresh('chat', 'list')
      go(chatHref(search, id))
    } catch (thrown) {
      setRemoved(removed)
      announce('bad', (thrown as Error).message)
    }
  }
  return (
    <div
      data-wide
      className="grid h-[calc(100dvh-5.5rem)] grid-rows-1 gap-6 md:h-[calc(100dvh-3rem)] md:grid-cols-[15rem_minmax(0,1fr)]"
    >
      <div className={`min-h-0 flex-col ${isListShown ? 'flex' : 'hidden md:flex'}`}>
        <ConversationList
          current={params?.id}
          begin={begin}
          hide={() => showList(false)}
          removed={removed}
          undo={() => void undo()}
        />
      </div>
      <div className={`min-h-0 min-w-0 flex-col ${isListShown ? 'hidden md:flex' : 'flex'}`}>
        {opened ? (
          <OpenedView
            key={opened.key}
            opened={opened}
            task={task}
            able={able}
            token={token}
            kept={id => {
              forgetFresh()
              if (params?.id !== id) go(chatHref(search, id), { replace: true })
            }}
            removed={gone => {
              setRemoved(gone)
              go(chatHref(search))
            }}
            showList={() => showList(true)}
          />
        ) : query.error ? (
          <>
            <PageHeading title={shellText.pages.chat} />
            <Failed failure={query.error} />
          </>
        ) : (
          <Loading lines={6} />
        )}
      </div>
    </div>
  )
}

/** The conversation at an address: one that is kept, or a new one, which may begin with the messages of a job. */
function useOpened(id: string | undefined, token: string) {
  const [search] = useSearchParams()
  const job = search.get('job')
  const open = id === undefined ? undefined : openedWith(id)
  const kept = useQuery({
    queryKey: ['chat', 'one', id],
    queryFn: () => storeOf(id!, token).read(id!),
    enabled: id !== undefined && !open && !isDropped(id),
    gcTime: 0,
  })
  const begun = useQuery({
    queryKey: ['chat', 'job', job],
    queryFn: () => conversationOfJob(job!),
    enabled: id === undefined && job !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (id !== undefined) return { query: kept, opened: open ?? (kept.data && openRead(id, kept.data, token)) }
  const isKnown = job === null || begun.data !== undefined
  const opened: OpenedConversation | undefined = isKnown ? openFresh(token, job ?? '', begun.data) : undefined
  return { query: begun, opened }
}

/** The messages of a job, which a new conversation begins with. */
async function conversationOfJob(id: string): Promise<Conversation> {
  const { inputs } = await dataOf(api.GET('/api/jobs/{id}', at({ id })))
  if (inputs === null || typeof inputs !== 'object') {
    announce('bad', text.inputsGone)
    return emptyConversation
  }
  const { messages: sent, model: _, stream: __, stream_options: ___, ...parameters } = inputs as Record<string, unknown>
  const { system, messages } = conversationOf(sent)
  const chain = chained(messages)
  return { ...emptyConversation, system, parameters, messages: chain, current: chain.at(-1)?.id ?? null }
}
