import { RotateCcw, Trash2 } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useSession } from '../../../api/client.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { TextArea } from '../../../components/fields.tsx'
import { Section } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import type { ModelChoice } from '../choices.ts'
import { type PanelProps, TaskForm, useForm } from '../form/task-form.tsx'
import { Samples } from '../samples-view.tsx'
import { Composer } from './composer.tsx'
import { apiMessages, conversationOf } from './conversation.ts'
import { MessageView, ToolResults } from './message-view.tsx'
import { type Conversation, keep, readKept, useConversation } from './use-conversation.ts'

const text = playgroundText.chat

/** What the code asks before a person has written anything: a request without messages is refused. */
const firstMessages = [{ role: 'user', text: text.example }] as const

/** A conversation with a model, or the same questions to two of them side by side. */
export function Chat(props: PanelProps) {
  const { task, models, initial } = props
  const { session } = useSession()
  const owner = session.token.id
  const [began] = useState(() => (initial ? conversationOf(initial.messages) : readKept(owner)))
  const [system, setSystem] = useState(began.system)
  const { form, request: parameters, check } = useForm(props, 'messages', 'n')
  const [first, second] = models
  const shared = { path: task.path!, system, parameters, initial: began.messages }
  const one = useConversation({ ...shared, model: first!.id })
  const two = useConversation({ ...shared, model: second?.id ?? first!.id, initial: [] })
  const conversations = second ? [one, two] : [one]
  const busy = conversations.some(({ growing }) => growing)
  const all = (action: 'clear' | 'stop') => {
    for (const conversation of conversations) conversation[action]()
  }
  const { messages } = one
  useEffect(() => keep(owner, { system, messages }), [owner, system, messages])

  const sees = models.every(({ features }) => features[task.id]?.includes('images'))
  const inputs = useMemo(
    () => ({ messages: apiMessages(system, messages.length > 0 ? messages : firstMessages), ...parameters }),
    [system, messages, parameters],
  )
  const send = (...more: Parameters<Conversation['ask']>) => {
    if (check()) for (const conversation of conversations) conversation.ask(...more)
  }

  return (
    <div className="grid gap-6 lg:grid-cols-[3fr_2fr]">
      <div className="min-w-0">
        <Section
          title={text.conversation}
          actions={
            messages.length > 0 && <Button small icon={Trash2} onClick={() => all('clear')} label={text.clear} />
          }
        >
          <div className="bg-surface border-line space-y-3 rounded-lg border p-3">
            <div className={second ? 'grid gap-3 md:grid-cols-2' : ''}>
              {conversations.map((conversation, at) => (
                <Messages key={at} conversation={conversation} model={models[at]!} alone={!second} />
              ))}
            </div>
            <Composer sees={sees} busy={busy} send={send} stop={() => all('stop')} />
            <p className="text-muted text-xs">
              {text.enter} {text.kept}
            </p>
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
