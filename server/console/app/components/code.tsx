import { Check, Copy } from 'lucide-react'
import { Fragment, type ReactNode, useState } from 'react'
import { shellText } from '../text/shell.ts'
import { IconButton } from './button.tsx'

/**
 * Copies to the clipboard, which browsers offer only to pages of https and of this machine. Resolves with whether it has: a
 * browser may refuse what is not copied at once on a click.
 */
export async function copy(value: string): Promise<boolean> {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(value).then(
      () => true,
      () => false,
    )
  const area = document.createElement('textarea')
  area.value = value
  // In an open dialog nothing outside of it can be selected.
  const place = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body
  place.append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  return isCopied
}

/** A button that copies a text. */
export function CopyButton({ value, label = shellText.copy }: { value: string; label?: string }) {
  const [copied, setCopied] = useState(false)
  return (
    <IconButton
      icon={copied ? Check : Copy}
      label={copied ? shellText.copied : label}
      onClick={() => {
        void copy(value).then(setCopied)
        setTimeout(() => setCopied(false), 2_000)
      }}
    />
  )
}

/** A short piece of code in a sentence, with a button that copies it. */
export const CopyText = ({ children }: { children: string }) => (
  <span className="inline-flex items-center">
    <code className="bg-raised rounded px-1 font-mono break-all">{children}</code>
    <CopyButton value={children} />
  </span>
)

/** Lines of code or output, which scroll, with a button that copies them. `children`: the same in colours. */
export const CodeBlock = ({ code, label, children = code }: { code: string; label: string; children?: ReactNode }) => (
  <div className="bg-raised border-line flex items-start rounded-md border">
    <pre tabIndex={0} aria-label={label} className="max-h-96 min-w-0 flex-1 overflow-auto p-3 font-mono text-xs">
      <code>{children}</code>
    </pre>
    <div className="p-1">
      <CopyButton value={code} />
    </div>
  </div>
)

/** A sentence of the API, in which code stands between backticks. */
export function CodeWords({ children }: { children: string }) {
  return children.split('`').map((part, at) =>
    at % 2 === 0 ? (
      <Fragment key={at}>{part}</Fragment>
    ) : (
      <code key={at} className="bg-raised rounded px-1 font-mono">
        {part}
      </code>
    ),
  )
}
