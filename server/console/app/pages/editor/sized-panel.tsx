import type { ReactNode } from 'react'
import { SizeHandle } from '../../components/size-handle.tsx'

/** The edges of the graph over which a panel may stand: where it has its handle, and its place on a wide screen. */
const places = {
  right: {
    edge: 'left',
    look: 'lg:inset-y-3 lg:right-3 lg:w-(--details) lg:max-w-[calc(100%-1.5rem)]',
  },
  bottom: { edge: 'top', look: 'lg:right-[calc(var(--details)+1.5rem)] lg:bottom-3 lg:left-3 lg:h-(--run)' },
} as const

interface SizedPanelProps {
  label: string
  /** The edge of the graph over which it stands. */
  covers: keyof typeof places
  handleLabel: string
  /** Pixels. */
  size: number
  least: number
  most: number
  setSize: (size: number) => void
  children: ReactNode
}

/** A panel over an edge of the graph, whose size people change. On a narrow screen it stands below the graph. */
export function SizedPanel({ label, covers, handleLabel, size, least, most, setSize, children }: SizedPanelProps) {
  const { edge, look } = places[covers]
  return (
    <section
      data-covers={covers}
      aria-label={label}
      className={`bg-surface border-line lg:animate-panel flex min-w-0 flex-col max-lg:border-t lg:absolute lg:rounded-lg lg:border lg:shadow-md ${look}`}
    >
      <div className="max-lg:hidden">
        <SizeHandle label={handleLabel} edge={edge} size={size} limits={{ least, most }} set={setSize} />
      </div>
      {children}
    </section>
  )
}
