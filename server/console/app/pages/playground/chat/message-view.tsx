import { memo, type ReactNode, useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Caret } from '../../../components/caret.tsx'
import { CopyButton } from '../../../components/code.tsx'
import { controlClass } from '../../../components/fields.tsx'
import { costText, countText, durationText } from '../../../components/format.ts'
import { Notice } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { previewOf } from '../form/files.tsx'
import { apart } from './conversation.ts'
import type { Figures, Message, ToolCall } from './message.ts'

const text = playgroundText.chat

/** One message. An answer that grows is drawn again; all others are not. */
export const MessageView = memo(function MessageView({
  message,
  model,
  currency,
  growing = false,
  children,
}: {
  message: Message
  /** Who answered, and in which currency, where the message itself does not say it. */
  model: string
  currency: string
  growing?: boolean
  /** What can be done with it. */
  children?: ReactNode
}) {
  const { role, images = [], toolCalls = [], figures, failure, stopped } = message
  const author = role === 'assistant' ? (message.model ?? model) : role === 'tool' ? text.tool : text.you
  const { text: words, reasoning } = apart(message)
  const isAnswer = role === 'assistant'
  const silent = isAnswer && words === '' && reasoning === '' && toolCalls.length === 0 && !failure && !stopped
  return (
    <article aria-label={author} className={`min-w-0 space-y-2 rounded-lg px-3 py-2 ${isAnswer ? '' : 'bg-raised'}`}>
      <p className="text-muted text-xs font-medium">{author}</p>
      {images.map(image => (
        <Attached key={image} image={image} />
      ))}
      {reasoning !== '' && (
        <details className="text-muted border-line border-l-2 pl-3">
          <summary>{text.reasoning}</summary>
          <p className="break-words whitespace-pre-wrap">{reasoning}</p>
        </details>
      )}
      {words !== '' && (
        <p className="break-words whitespace-pre-wrap">
          {words}
          {growing && <Caret />}
        </p>
      )}
      {toolCalls.map(call => (
        <Call key={call.id} call={call} />
      ))}
      {silent && <p className="text-muted">{growing ? text.waiting : text.noAnswer}</p>}
      {failure && <Notice kind="bad">{failure}</Notice>}
      {stopped && <p className="text-muted text-xs">{text.stopped}</p>}
      {isAnswer && !growing && (
        <div className="flex flex-wrap items-center gap-1">
          {words !== '' && <CopyButton value={words} label={text.copy} />}
          {children}
          {figures && <span className="text-muted text-xs">{figuresText(figures, message.currency ?? currency)}</span>}
        </div>
      )}
    </article>
  )
})

/** Tokens that came in one piece were not written at that speed. */
const leastSeconds = 0.2

/** `1.2 s · first text after 80 ms · 12 tokens in · 30 tokens out · 25 tokens/s · cost 0.01 USD` */
function figuresText(figures: Figures, currency: string): string {
  const { firstMs, totalMs, inputTokens, outputTokens, cost } = figures
  const { usage, cost: costWords } = playgroundText
  const all = [durationText(totalMs)]
  if (firstMs !== undefined) all.push(text.first(durationText(firstMs)))
  if (inputTokens !== undefined) all.push(usage.input_tokens(countText(inputTokens)))
  if (outputTokens !== undefined) {
    all.push(usage.output_tokens(countText(outputTokens)))
    const seconds = (totalMs - (firstMs ?? totalMs)) / 1_000
    if (outputTokens > 1 && seconds > leastSeconds)
      all.push(text.speed(countText(Math.round((outputTokens - 1) / seconds))))
  }
  if (cost !== undefined && cost > 0) all.push(costWords(costText(cost, currency)))
  return all.join(' · ')
}

function Attached({ image }: { image: string }) {
  const url = previewOf(image)
  if (url === undefined) return <p className="text-muted font-mono text-xs break-all">{image.slice(0, 80)}</p>
  return <img src={url} alt={text.attached} className="border-line max-h-48 max-w-full rounded-md border" />
}

const Call = ({ call: { name, arguments: given } }: { call: ToolCall }) => (
  <div className="border-line rounded-md border p-2">
    <p className="font-medium">{text.calls(name)}</p>
    <pre tabIndex={0} aria-label={text.calls(name)} className="overflow-x-auto font-mono text-xs whitespace-pre-wrap">
      {given}
    </pre>
  </div>
)

/** Asks the person for the results of the tools that the model has called. */
export function ToolResults({
  calls,
  send,
}: {
  calls: readonly ToolCall[]
  send: (results: readonly Message[]) => void
}) {
  const [results, setResults] = useState<readonly string[]>(() => calls.map(() => ''))
  return (
    <form
      className="bg-raised space-y-2 rounded-lg p-3"
      onSubmit={event => {
        event.preventDefault()
        send(calls.map(({ id }, at) => ({ role: 'tool', text: results[at]!, toolCallId: id })))
      }}
    >
      {calls.map(({ id, name }, at) => (
        <textarea
          key={id}
          rows={2}
          required
          aria-label={text.toolResult(name)}
          placeholder={text.toolResult(name)}
          value={results[at]}
          onChange={event => setResults(results.with(at, event.target.value))}
          className={`${controlClass} py-1.5`}
        />
      ))}
      <Button type="submit" label={text.sendResult} />
    </form>
  )
}
