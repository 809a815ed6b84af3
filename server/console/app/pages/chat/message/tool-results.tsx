import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { controlClass } from '../../../components/fields.tsx'
import { chatText as text } from '../../../text/chat.ts'
import type { Message, ToolCall } from './message.ts'

interface ToolResultsProps {
  calls: readonly ToolCall[]
  send: (results: readonly Message[]) => void
}

/** Asks the person for the results of the tools that the model has called. */
export function ToolResults({ calls, send }: ToolResultsProps) {
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
