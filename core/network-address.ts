import ipaddr from 'ipaddr.js'

/** A range of addresses from which media may be fetched although it is not public. */
export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number]

const globalUnicast6 = ipaddr.parseCIDR('2000::/3')
/** Azure serves the credentials of its virtual machines at this address, which looks public. */
const azurePlatform = '168.63.129.16'

/** Whether a text is an address or a range in CIDR notation. */
export const isNetwork = (text: string): boolean =>
  isAddress(text) || ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)

/** Returns such a text as a range. */
export function networkOf(text: string): Network {
  if (!isAddress(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Whether an address is in the public internet. Of IPv6 only the allocated range is public, without the forms that carry
 * an IPv4 address through a translator, because we cannot know where those lead. False for texts that are not addresses.
 */
export function isPublic(text: string): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' ? address.toString() !== azurePlatform : address.match(globalUnicast6)
}

/** Whether an address lies in one of the networks. */
export function isInNetworks(text: string, networks: readonly Network[]): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.process(text)
  return networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

/** Returns the part of an address that tells clients apart: the first 64 bits of IPv6, because a client has all that begin so. */
export function clientPart(text: string): string {
  if (!text.includes(':') || !isAddress(text)) return text
  const address = ipaddr.process(text)
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(':') : address.toString()
}

/** Whether any address of this machine's loopback interface lies in one of the networks. */
export const coversLoopback = (networks: readonly Network[]): boolean =>
  networks.some(network => loopback.some(own => overlap(network, own)))

const loopback: readonly Network[] = [ipaddr.parseCIDR('127.0.0.0/8'), ipaddr.parseCIDR('::1/128')]

const overlap = ([one, bits]: Network, [other, otherBits]: Network): boolean =>
  one.kind() === other.kind() && one.match(other, Math.min(bits, otherBits))

/** IPv4 with four parts only, because URL parsers and resolvers give no other form. IPv6 without a zone. */
function isAddress(text: string): boolean {
  return text.includes(':')
    ? !text.includes('%') && ipaddr.IPv6.isValid(text)
    : ipaddr.IPv4.isValidFourPartDecimal(text)
}
