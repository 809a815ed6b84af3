import { Check, ChevronLeft, ChevronRight, Pencil, RotateCcw } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { branchOf } from '../../../../../core/conversations/markdown.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { ModelChoice } from '../playground/choices.ts'
import type { OpenedConversation, OpenedState } from './conversation/opened.ts'
import { comparedWith, endOf, type TreeMessage, versionsOf } from './conversation/tree.ts'
import { EditMessage } from './edit-message.tsx'
import type { Message } from './message/message.ts'
import { MessageView } from './message/message-view.tsx'
import { ToolResults } from './message/tool-results.tsx'

interface MessagesProps {
  opened: OpenedConversation
  state: OpenedState
  /** Those that answer next. */
  models: readonly ModelChoice[]
  /** The currency of a model's prices. */
  currencyOf: (model: string | undefined) => string
  ask: (said: readonly Message[], after?: string | null) => boolean
  again: (answer: TreeMessage) => void
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
  // Follows the answer, unless the person has scrolled up to read.
  useEffect(() => {
    if (atEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight })
  })

  const shown = (message: TreeMessage, isCompared = false) => (
    <MessageView
      message={message}
      model={message.model ?? models[0]!.id}
      currency={currencyOf(message.model)}
      growing={growing.has(message.id)}
    >
      {!growing.has(message.id) && message.role !== 'tool' && (
        <Actions
          message={message}
          state={state}
          show={isCompared ? undefined : opened.show}
          edit={isBusy ? undefined : () => edit(message.id)}
          again={isBusy ? undefined : () => again(message)}
          models={models}
        />
      )}
    </MessageView>
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
                if (ask([{ role: 'user', text: words, files: message.files }], message.parent)) edit(undefined)
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
        {!isBusy && last?.toolCalls && <ToolResults key={last.id} calls={last.toolCalls} send={ask} />}
      </div>
    </div>
  )
}

interface ActionsProps {
  message: TreeMessage
  state: OpenedState
  /** Undefined where the versions stand side by side. */
  show: ((id: string) => void) | undefined
  /** Undefined while an answer grows. */
  edit: (() => void) | undefined
  again: (() => void) | undefined
  models: readonly ModelChoice[]
}

/** What can be done with a message: another version of it, and the way between its versions. */
function Actions({ message, state: { messages }, show, edit, again, models }: ActionsProps) {
  const versions = versionsOf(messages, message)
  const at = versions.findIndex(({ id }) => id === message.id)
  const go = (to: number) => () => show?.(endOf(messages, versions[to]!.id))
  return (
    <>
      {show && versions.length > 1 && (
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
      {message.role === 'user' && edit && <IconButton icon={Pencil} label={text.edit} onClick={edit} />}
      {message.role === 'assistant' && again && (
        <IconButton icon={RotateCcw} label={text.regenerate(models.map(({ id }) => id).join(', '))} onClick={again} />
      )}
    </>
  )
}
