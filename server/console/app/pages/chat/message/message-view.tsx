import { memo, type ReactNode } from 'react'
import { CopyButton } from '../../../components/code.tsx'
import { costText, countText, durationText, indentedJson } from '../../../components/format.ts'
import { Notice } from '../../../components/page.tsx'
import { chatText as text } from '../../../text/chat.ts'
import { playgroundText } from '../../../text/playground.ts'
import { SentFiles } from '../attachments/sent-files.tsx'
import { apart } from './chunks.ts'
import type { Figures, Message, ToolCall } from './message.ts'
import { Words } from './words.tsx'

interface MessageViewProps {
  message: Message
  /** Who answered, and in which currency, where the message itself does not say it. */
  model: string
  currency: string
  growing?: boolean
  /** Whether an answer is shown as it is, and not as Markdown. */
  plain?: boolean
  /** What can be done with it. */
  children?: ReactNode
}

/** One message. An answer that grows is drawn again; all others are not. */
export const MessageView = memo(function MessageView({
  message,
  model,
  currency,
  growing = false,
  plain = false,
  children,
}: MessageViewProps) {
  const { role, files = [], toolCalls = [], figures, failure, stopped } = message
  const isAnswer = role === 'assistant'
  const author = isAnswer ? (message.model ?? model) : role === 'tool' ? text.tool : text.you
  const { text: words, reasoning } = apart(message)
  const silent = isAnswer && words === '' && reasoning === '' && toolCalls.length === 0 && !failure && !stopped
  return (
    <article aria-label={author} className={`flex min-w-0 flex-col gap-2 py-1 ${isAnswer ? '' : 'items-end'}`}>
      <p className={isAnswer ? 'text-muted text-xs font-medium' : 'sr-only'}>{author}</p>
      {files.length > 0 && <SentFiles files={files} />}
      {reasoning !== '' && (
        <details className="text-muted border-line border-l-2 pl-3">
          <summary>{text.reasoning}</summary>
          <p className="break-words whitespace-pre-wrap">{reasoning}</p>
        </details>
      )}
      {words !== '' && (
        <div className={isAnswer ? '' : 'bg-raised max-w-[90%] rounded-lg px-3 py-2'}>
          <Words text={words} growing={growing} plain={plain || !isAnswer} />
        </div>
      )}
      {toolCalls.map(call => (
        <Call key={call.id} call={call} />
      ))}
      {silent && <p className="text-muted">{growing ? text.waiting : text.noAnswer}</p>}
      {failure && <Notice kind="bad">{failure}</Notice>}
      {stopped && <p className="text-muted text-xs">{text.stopped}</p>}
      {!growing && (isAnswer || children) && (
        <div className="text-muted -mt-1 flex flex-wrap items-center gap-1">
          {isAnswer && words !== '' && <CopyButton value={words} label={text.copy} />}
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

const Call = ({ call: { name, arguments: given } }: { call: ToolCall }) => (
  <div className="border-line rounded-md border p-2">
    <p className="font-medium">{text.calls(name)}</p>
    <pre tabIndex={0} aria-label={text.calls(name)} className="overflow-x-auto font-mono text-xs whitespace-pre-wrap">
      {/* As it is while it is not complete. */}
      {indentedJson(given)}
    </pre>
  </div>
)
