import { useState } from 'react'
import { jobsText } from '../../text/jobs.ts'
import { Button } from '../button.tsx'
import { countText } from '../format.ts'
import { Facts } from '../page.tsx'
import { Media } from './media.tsx'
import { isAddress, ownMedium } from './result-facts.ts'

/** The inputs of a job by name: media as such, long text folded, the rest as it is. */
export function InputsView({ inputs }: { inputs: unknown }) {
  if (inputs === null || inputs === undefined) return <p className="text-muted">{jobsText.noInputs}</p>
  const fields = typeof inputs === 'object' ? Object.entries(inputs) : [['', inputs] as const]
  return (
    <Facts
      className="grid grid-cols-1 gap-x-4 gap-y-1.5 sm:grid-cols-[minmax(7rem,auto)_1fr]"
      rows={fields
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => [name, <InputValue key={name} name={name} value={value} />])}
    />
  )
}

function InputValue({ name, value }: { name: string; value: unknown }) {
  if (typeof value === 'string' && isAddress(value)) {
    const medium = ownMedium(value)
    if (medium) {
      const look = medium.kind === 'image' ? 'border-line max-h-40 rounded border' : 'max-h-40 rounded'
      return <Media {...medium} label={name} className={look} audioClass="" />
    }
    return <span className="break-all">{value.slice(0, 200)}</span>
  }
  if (Array.isArray(value) && isConversation(value))
    return (
      <ul className="space-y-1">
        {value.map((message, at) => (
          <li key={at} className="break-words whitespace-pre-wrap">
            <span className="text-muted">{message.role}: </span>
            {partsOf(message.content).map((part, index) => (
              <InputValue key={index} name={message.role} value={part} />
            ))}
          </li>
        ))}
      </ul>
    )
  if (typeof value === 'object')
    return (
      <pre tabIndex={0} aria-label={name} className="bg-raised max-h-60 overflow-auto rounded p-2 font-mono text-xs">
        {JSON.stringify(value, null, 2)}
      </pre>
    )
  return <PlainText text={typeof value === 'string' ? value : JSON.stringify(value)} />
}

/** Characters of a text that are shown at first. */
const fewCharacters = 1_000

/** A text; a long one has a button that shows the rest. */
function PlainText({ text }: { text: string }) {
  const [whole, setWhole] = useState(text.length <= fewCharacters)
  return (
    <span className="break-words whitespace-pre-wrap">
      {whole ? text : `${text.slice(0, fewCharacters)}… `}
      {!whole && <Button small onClick={() => setWhole(true)} label={jobsText.wholeText(countText(text.length))} />}
    </span>
  )
}

/** The texts and addresses of the content of a message; what is neither stays as it is. */
const partsOf = (content: unknown): unknown[] =>
  (Array.isArray(content) ? content : [content ?? '']).map((part: unknown) => {
    const { text, image_url: image, video_url: video } = (part ?? {}) as Record<string, unknown>
    return text ?? addressIn(image) ?? addressIn(video) ?? part
  })
const addressIn = (value: unknown): unknown => (value as { url?: unknown } | undefined)?.url

const isConversation = (value: readonly unknown[]): value is { role: string; content: unknown }[] =>
  value.length > 0 && value.every(one => typeof one === 'object' && one !== null && 'role' in one && 'content' in one)
