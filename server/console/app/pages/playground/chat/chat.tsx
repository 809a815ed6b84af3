import { RotateCcw, Trash2, Undo2 } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useSession } from '../../../api/client.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { TextArea } from '../../../components/fields.tsx'
import { Section } from '../../../components/page.tsx'
import { useKeeping } from '../../../components/use-keeping.ts'
import { playgroundText } from '../../../text/playground.ts'
import type { ModelChoice } from '../choices.ts'
import { type PanelProps, TaskForm, useForm } from '../form/task-form.tsx'
import { Samples } from '../samples-view.tsx'
import { Composer } from './composer.tsx'
import { apiMessages, conversationOf, questionOf } from './conversation.ts'
import { EarlierConversations } from './earlier-conversations.tsx'
import { type OpenedConversation, openConversation, openEarlier } from './kept-conversations.ts'
import { MessageView, ToolResults } from './message-view.tsx'
import { type Conversation, useConversation } from './use-conversation.ts'

const text = playgroundText.chat

/** What the code asks before a person has written anything: a request without messages is refused. */
const firstMessages = [{ role: 'user', text: text.example }] as const

/** A conversation with a model, or the same questions to two of them side by side. */
export function Chat(props: PanelProps) {
  const { initial, origin } = props
  const { session } = useSession()
  const token = session.token.id
  const [opened, open] = useState(() =>
    openConversation(token, origin, initial && { ...conversationOf(initial.messages), compared: [] }),
  )
  return (
    <OpenedChat
      key={opened.id}
      {...props}
      token={token}
      opened={opened}
      openEarlier={key => open(openEarlier(token, key))}
    />
  )
}

interface OpenedChatProps extends PanelProps {
  token: string
  opened: OpenedConversation
  openEarlier: (key: string) => void
}

function OpenedChat({ token, opened, openEarlier, ...props }: OpenedChatProps) {
  const { task, models } = props
  const { begun } = opened
  const [system, setSystem] = useState(begun.system)
  const { form, request: parameters, check } = useForm(props, 'messages', 'n')
  const [first, second] = models
  const other = second ?? first!
  const shared = { path: task.path!, system, parameters }
  const one = useConversation({ ...shared, model: first!.id, currency: first!.currency, initial: begun.messages })
  const two = useConversation({ ...shared, model: other.id, currency: other.currency, initial: begun.compared })
  const conversations = second ? [one, two] : [one]
  const busy = conversations.some(({ growing }) => growing)
  const { messages, soFar } = one
  const [cleared, setCleared] = useState<OpenedConversation['begun']>()
  const kept = useMemo(() => ({ system, messages: soFar, compared: two.soFar }), [system, soFar, two.soFar])
  useKeeping(kept, opened.keep)
  const clear = () => {
    setCleared(kept)
    for (const conversation of [one, two]) conversation.clear()
  }
  const undoClear = () => {
    one.restore(cleared!.messages)
    two.restore(cleared!.compared)
    setCleared(undefined)
  }

  const sees = models.every(({ features }) => features[task.id]?.includes('images'))
  const inputs = useMemo(() => {
    const question = questionOf(messages)
    return { messages: apiMessages(system, question.length > 0 ? question : firstMessages), ...parameters }
  }, [system, messages, parameters])
  const send = (...more: Parameters<Conversation['ask']>) => {
    if (!check()) return
    setCleared(undefined)
    for (const conversation of conversations) conversation.ask(...more)
  }
  const stop = () => {
    for (const conversation of conversations) conversation.stop()
  }

  return (
    <div className="grid gap-6 lg:grid-cols-[3fr_2fr]">
      <div className="min-w-0">
        <Section
          title={text.conversation}
          actions={
            messages.length > 0 ? (
              <Button small icon={Trash2} onClick={clear} label={text.clear} />
            ) : (
              cleared && <Button small icon={Undo2} onClick={undoClear} label={text.undoClear} />
            )
          }
        >
          <div className="bg-surface border-line space-y-3 rounded-lg border p-3">
            <div className={second ? 'grid gap-3 md:grid-cols-2' : ''}>
              {conversations.map((conversation, at) => (
                <Messages key={at} conversation={conversation} model={models[at]!} alone={!second} />
              ))}
            </div>
            <Composer sees={sees} busy={busy} send={send} stop={stop} />
            <p className="text-muted text-xs">
              {text.enter} {text.kept}
            </p>
            <EarlierConversations token={token} current={() => opened.key} open={openEarlier} />
          </div>
        </Section>
      </div>
      <div className="min-w-0">
        <Section title={playgroundText.request}>
          <div className="bg-surface border-line space-y-4 rounded-lg border p-4">
            <TextArea label={text.system} hint={text.systemHint} rows={3} value={system} change={setSystem} />
            <TaskForm {...form} moreText={text.parameters} />
          </div>
        </Section>
        <Samples task={task} model={first!.id} inputs={inputs} />
      </div>
    </div>
  )
}

interface MessagesProps {
  conversation: Conversation
  model: ModelChoice
  alone: boolean
}

function Messages({ conversation: { messages, growing, ask, again }, model, alone }: MessagesProps) {
  const list = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  // Follows the answer, unless the person has scrolled up to read.
  useEffect(() => {
    if (atEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight })
  })
  const last = messages.at(-1)
  const { currency, id } = model
  return (
    <div
      ref={list}
      role="log"
      aria-label={alone ? text.conversation : id}
      aria-busy={growing !== undefined}
      tabIndex={0}
      onScroll={({ currentTarget: shown }) => {
        atEnd.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 40
      }}
      className="max-h-[60dvh] min-h-40 space-y-2 overflow-y-auto"
    >
      {messages.length === 0 && !growing && <p className="text-muted p-3">{text.empty}</p>}
      {messages.map((message, at) => (
        <MessageView key={at} message={message} model={id} currency={currency}>
          {at === messages.length - 1 && !growing && (
            <IconButton icon={RotateCcw} label={text.regenerate} onClick={again} />
          )}
        </MessageView>
      ))}
      {growing && <MessageView message={growing} model={id} currency={currency} growing />}
      {!growing && last?.toolCalls && <ToolResults calls={last.toolCalls} send={results => ask(...results)} />}
    </div>
  )
}
