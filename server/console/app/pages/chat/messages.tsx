import { Check, ChevronLeft, ChevronRight, Pencil, RotateCcw } from 'lucide-react'
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { branchOf } from '../../../../../core/conversations/markdown.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { ModelChoice } from '../playground/choices.ts'
import type { OpenedConversation, OpenedState } from './conversation/opened.ts'
import { comparedWith, endOf, type TreeMessage, versionsIn } from './conversation/tree.ts'
import { EditMessage } from './edit-message.tsx'
import type { Message } from './message/message.ts'
import { MessageView } from './message/message-view.tsx'
import { ToolResults } from './message/tool-results.tsx'
import { ReadAloud } from './voice/read-aloud.tsx'
import { useVoiceModel } from './voice/use-voice-model.ts'

interface MessagesProps {
  opened: OpenedConversation
  state: OpenedState
  /** Those that answer next. */
  models: readonly ModelChoice[]
  /** The currency of a model's prices. */
  currencyOf: (model: string | undefined) => string
  ask: (said: readonly Message[], after?: string | null) => Promise<boolean>
  again: (answer: TreeMessage) => Promise<void>
}

/** Pixels from the end at which the end is still followed. */
const nearEnd = 40

/** The branch that is shown, whose last answers may stand side by side. */
export function Messages({ opened, state, models, currencyOf, ask, again }: MessagesProps) {
  const { messages, current, growing } = state
  const list = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const [edited, edit] = useState<string>()
  const branch = branchOf(messages, current)
  const last = branch.at(-1)
  const compared = comparedWith(
    messages,
    last,
    models.map(({ id }) => id),
  )
  const isBusy = growing.size > 0
  const speaker = useVoiceModel('synthesize')
  // Follows the answer, unless the person has scrolled up to read.
  useEffect(() => {
    if (atEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight })
  })

  // The tree only grows: which versions a message has changes with the number of messages, and not as an answer grows.
  const versions = useMemo(() => versionsIn(messages), [messages.length])
  const latest = useRef(again)
  latest.current = again
  const askAgain = useCallback((answer: TreeMessage) => void latest.current(answer), [])
  const names = models.map(({ id }) => id).join(', ')

  const shown = (message: TreeMessage, isCompared = false) => (
    <ShownMessage
      message={message}
      model={message.model ?? models[0]!.id}
      currency={currencyOf(message.model)}
      isGrowing={growing.has(message.id)}
      isBusy={isBusy}
      versions={isCompared ? undefined : versions(message)}
      opened={opened}
      edit={edit}
      again={askAgain}
      names={names}
      speaker={speaker}
    />
  )
  return (
    <div
      ref={list}
      role="log"
      aria-label={text.conversation}
      aria-busy={isBusy}
      tabIndex={0}
      onScroll={({ currentTarget: scrolled }) => {
        atEnd.current = scrolled.scrollHeight - scrolled.scrollTop - scrolled.clientHeight < nearEnd
      }}
      className="min-h-0 flex-1 overflow-y-auto"
    >
      <div className={`mx-auto space-y-3 ${compared.length > 0 ? 'max-w-6xl' : 'max-w-3xl'}`}>
        {messages.length === 0 && <p className="text-muted py-16 text-center">{text.empty}</p>}
        {(compared.length > 0 ? branch.slice(0, -1) : branch).map(message =>
          message.id === edited ? (
            <EditMessage
              key={message.id}
              message={message}
              close={() => edit(undefined)}
              send={words => {
                void ask([{ role: 'user', text: words, files: message.files }], message.parent).then(
                  isSent => isSent && edit(undefined),
                )
              }}
            />
          ) : (
            <div key={message.id}>{shown(message)}</div>
          ),
        )}
        {compared.length > 0 && (
          <div className={`grid gap-4 ${compared.length > 2 ? 'lg:grid-cols-3' : 'md:grid-cols-2'}`}>
            {compared.map(message => (
              <div key={message.id} className="border-line bg-surface min-w-0 rounded-lg border px-3 py-1">
                {shown(message, true)}
                {message.id === current ? (
                  <p className="text-accent flex min-h-7 items-center gap-1 pb-1 text-xs">
                    <Check aria-hidden className="size-4" />
                    {text.goesOn}
                  </p>
                ) : (
                  <Button small className="mb-2" onClick={() => opened.show(message.id)} label={text.goOn} />
                )}
              </div>
            ))}
          </div>
        )}
        {!isBusy && last?.toolCalls && (
          <ToolResults key={last.id} calls={last.toolCalls} send={results => void ask(results)} />
        )}
      </div>
    </div>
  )
}

interface ShownMessageProps {
  message: TreeMessage
  model: string
  currency: string
  isGrowing: boolean
  /** Whether any answer grows: then nothing is written again. */
  isBusy: boolean
  /** Ids of its versions, itself among them; undefined where they stand side by side. */
  versions: readonly string[] | undefined
  opened: OpenedConversation
  edit: (id: string) => void
  again: (answer: TreeMessage) => void
  /** The models that answer next. */
  names: string
  /** The model that reads answers aloud; undefined without one. */
  speaker: string | undefined
}

/** One message with what can be done with it. While an answer grows, the others are not drawn again. */
const ShownMessage = memo(function ShownMessage({
  message,
  model,
  currency,
  isGrowing,
  isBusy,
  versions = [],
  opened,
  edit,
  again,
  names,
  speaker,
}: ShownMessageProps) {
  const { id, role, text: words } = message
  const at = versions.indexOf(id)
  const go = (to: number) => () => opened.show(endOf(opened.state().messages, versions[to]!))
  return (
    <MessageView message={message} model={model} currency={currency} growing={isGrowing}>
      {!isGrowing && role !== 'tool' && (
        <>
          {versions.length > 1 && (
            <span className="inline-flex items-center">
              <IconButton icon={ChevronLeft} label={text.before} disabled={at === 0} onClick={go(at - 1)} />
              <span className="text-muted text-xs tabular-nums">{text.versions(at + 1, versions.length)}</span>
              <IconButton
                icon={ChevronRight}
                label={text.after}
                disabled={at === versions.length - 1}
                onClick={go(at + 1)}
              />
            </span>
          )}
          {role === 'user' && !isBusy && <IconButton icon={Pencil} label={text.edit} onClick={() => edit(id)} />}
          {role === 'assistant' && words !== '' && speaker !== undefined && (
            <ReadAloud message={message} model={speaker} />
          )}
          {role === 'assistant' && !isBusy && (
            <IconButton icon={RotateCcw} label={text.regenerate(names)} onClick={() => again(message)} />
          )}
        </>
      )}
    </MessageView>
  )
})
