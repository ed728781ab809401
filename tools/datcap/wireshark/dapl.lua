-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
-- dapl.lua - shows in Wireshark what it does not know of iWARP and RoCE: immediate data, private data of MPA revision 2,
-- messages between software devices of DAT, packets of RoCE for congestion, flush and atomic write, and packets that a
-- capture has cut. All else is left to Wireshark. For the versions 4.0 (Lua 5.2) to 4.4 (Lua 5.4).
--
-- Written by `datcap rdma --wireshark`, with a profile. doc/design/soft-wire.md has the formats.

local dapl = Proto("dapl", "DAT over iWARP and RoCE")

-- The opcodes of RDMAP: RFC 5040, RFC 7306, and from 12 on those between software devices.
local OPCODES = {
	[0] = "Write", [1] = "Read Request", [2] = "Read Response", [3] = "Send", [4] = "Send with Invalidate",
	[5] = "Send with SE", [6] = "Send with SE and Invalidate", [7] = "Terminate", [8] = "Immediate Data",
	[9] = "Immediate Data with SE", [10] = "Atomic Request", [11] = "Atomic Response", [12] = "Send with Immediate",
	[13] = "Send with SE and Immediate", [14] = "Acknowledgement", [15] = "Close Notification",
}
local TERMINATE, IMMEDIATE, IMMEDIATE_SE, SEND_IMMEDIATE, SEND_SE_IMMEDIATE, ACKNOWLEDGEMENT, CLOSE =
	7, 8, 9, 12, 13, 14, 15
local HAS_BODY = { [1] = 28, [7] = 4, [10] = 52, [11] = 12 }	-- bytes that Wireshark reads behind the DDP header
-- The opcodes of BTH that Wireshark 4.0 does not know.
local FLUSH, ATOMIC_WRITE, NOTIFICATION = 28, 29, 0x81
local BTH_OPCODES = { [FLUSH] = "RC Flush", [ATOMIC_WRITE] = "RC Atomic Write", [NOTIFICATION] = "Congestion Notification" }
local SELECTIVITY = { [0] = "memory region", [1] = "range" }

local f = {
	opcode = ProtoField.uint8("dapl.opcode", "Operation", base.DEC, OPCODES),
	ulpdu = ProtoField.uint16("dapl.ulpdu", "ULPDU length"),
	last = ProtoField.bool("dapl.last", "Last segment"),
	stag = ProtoField.uint32("dapl.stag", "STag", base.HEX),
	offset = ProtoField.uint64("dapl.offset", "Tagged offset", base.HEX),
	queue = ProtoField.uint32("dapl.queue", "Queue"),
	message = ProtoField.uint32("dapl.message", "Message number"),
	message_offset = ProtoField.uint32("dapl.message_offset", "Message offset"),
	immediate = ProtoField.uint32("dapl.immediate", "Immediate data", base.HEX),
	write_length = ProtoField.uint32("dapl.write_length", "Length of the write before it"),
	payload = ProtoField.bytes("dapl.payload", "Payload"),
	crc = ProtoField.uint32("dapl.crc", "CRC", base.HEX),
	delivered = ProtoField.uint32("dapl.ack.delivered", "Messages delivered"),
	receives = ProtoField.uint32("dapl.ack.receives", "Sends up to this number find a receive"),
	window = ProtoField.uint64("dapl.ack.window", "Bytes of the window taken"),
	failed_kind = ProtoField.uint8("dapl.failed.kind", "Failed message", base.DEC,
		{ [0] = "send or write", [1] = "read or atomic" }),
	failed_status = ProtoField.uint8("dapl.failed.status", "Its completion status"),
	failed_number = ProtoField.uint32("dapl.failed.number", "Its number"),
	failed_delivered = ProtoField.uint32("dapl.failed.delivered", "Messages delivered"),
	request = ProtoField.bool("dapl.mpa.request", "Requested by a software device", 8, nil, 0x01),
	reply = ProtoField.bool("dapl.mpa.reply", "Replied by a software device", 8, nil, 0x02),
	datagrams = ProtoField.bool("dapl.mpa.datagrams", "For datagrams", 8, nil, 0x04),
	refused = ProtoField.bool("dapl.mpa.refused", "Refused by the device", 8, nil, 0x04),
	enhanced = ProtoField.bool("dapl.mpa.enhanced", "Enhanced (RFC 6581)", 8, nil, 0x10),
	peer_to_peer = ProtoField.bool("dapl.mpa.peer_to_peer", "Peer to peer", 16, nil, 0x8000),
	rtr_send = ProtoField.bool("dapl.mpa.rtr_send", "First frame: Send of 0 bytes", 16, nil, 0x4000),
	ird = ProtoField.uint16("dapl.mpa.ird", "IRD (reads that are answered at a time)", base.DEC, nil, 0x3fff),
	rtr_write = ProtoField.bool("dapl.mpa.rtr_write", "First frame: Write of 0 bytes", 16, nil, 0x8000),
	rtr_read = ProtoField.bool("dapl.mpa.rtr_read", "First frame: Read of 0 bytes", 16, nil, 0x4000),
	ord = ProtoField.uint16("dapl.mpa.ord", "ORD (reads that are requested at a time)", base.DEC, nil, 0x3fff),
	trailer = ProtoField.uint8("dapl.mpa.trailer", "Trailer version"),
	features = ProtoField.uint16("dapl.mpa.features", "Features", base.HEX),
	max_ulpdu = ProtoField.uint32("dapl.mpa.max_ulpdu", "Largest ULPDU"),
	udp_port = ProtoField.uint16("dapl.mpa.udp_port", "UDP port of datagrams"),
	token = ProtoField.bytes("dapl.mpa.token", "Token for shared memory"),
	private = ProtoField.bytes("dapl.mpa.private", "Private data of the program"),
	qpn = ProtoField.uint32("dapl.qpn", "Queue pair", base.HEX),
	source_qpn = ProtoField.uint32("dapl.source_qpn", "Source queue pair", base.HEX),
	qkey = ProtoField.uint32("dapl.qkey", "Q_Key", base.HEX),
	solicited = ProtoField.bool("dapl.solicited", "Solicited event", 32, nil, 0x2),
	bth_opcode = ProtoField.uint8("dapl.bth.opcode", "Operation", base.DEC, BTH_OPCODES),
	pkey = ProtoField.uint16("dapl.bth.p_key", "P_Key", base.HEX),
	psn = ProtoField.uint24("dapl.bth.psn", "Packet sequence number"),
	becn = ProtoField.bool("dapl.bth.becn", "Backward notification", 8, nil, 0x40),
	persistent = ProtoField.bool("dapl.flush.persistent", "To persistent memory", 32, nil, 0x2),
	visible = ProtoField.bool("dapl.flush.visible", "Globally visible", 32, nil, 0x1),
	selectivity = ProtoField.uint32("dapl.flush.selectivity", "Selects", base.DEC, SELECTIVITY, 0x30),
	address = ProtoField.uint64("dapl.address", "Address", base.HEX),
	r_key = ProtoField.uint32("dapl.r_key", "R_Key", base.HEX),
	length = ProtoField.uint32("dapl.length", "Length"),
	value = ProtoField.bytes("dapl.value", "Value"),
	icrc = ProtoField.uint32("dapl.icrc", "ICRC", base.HEX),
}
dapl.fields = f

local mpa = Proto("dapl_mpa", "FPDUs that Wireshark does not know")
local tcp_syn = Field.new("tcp.flags.syn")
local mpa_request, mpa_reply = Field.new("iwarp_mpa.req"), Field.new("iwarp_mpa.rep")
local bth_opcode = Field.new("infiniband.bth.opcode")
local rdmap = Dissector.get("iwarp_ddp_rdmap")

-- --- connections ------------------------------------------------------------------------------------------------

-- The connections whose handshake of MPA was seen, by addresses and ports: a list for each, the oldest first. Fields:
-- frame (of the Request), established (frame of the Reply), software (both ends are software devices).
local connections = {}

function dapl.init()
	connections = {}
end

local function key_of(pinfo)
	local a = tostring(pinfo.src) .. " " .. pinfo.src_port
	local b = tostring(pinfo.dst) .. " " .. pinfo.dst_port

	return a < b and a .. " " .. b or b .. " " .. a
end

-- Returns the connection that this frame belongs to.
local function connection_of(pinfo)
	local list = connections[key_of(pinfo)] or {}

	for i = #list, 1, -1 do
		if list[i].frame <= pinfo.number then
			return list[i]
		end
	end
end

-- Notes a Request or a Reply. Returns whether the segment is one.
local function note_handshake(tvb, pinfo)
	if tvb:len() < 20 or tvb(0, 7):string() ~= "MPA ID " then
		return false
	end
	local kind = tvb(7, 9):string()
	local is

	if kind == "Req Frame" then
		is = connection_of(pinfo)
		if not is or is.frame ~= pinfo.number and is.established then
			local key = key_of(pinfo)

			connections[key] = connections[key] or {}
			table.insert(connections[key], { frame = pinfo.number })
		end
		return true
	end
	if kind ~= "Rep Frame" then
		return false
	end
	is = connection_of(pinfo)
	if is and not is.established and tvb(16, 1):bitfield(2) == 0 then	-- not rejected
		is.established = pinfo.number
		is.software = tvb(16, 1):bitfield(6) == 1
	end
	return true
end

-- --- FPDUs ------------------------------------------------------------------------------------------------------

-- Returns the length of an FPDU whose ULPDU has `length` bytes: with its own length, padding and CRC.
local function fpdu_length(length)
	return length + 2 + (-(length + 2)) % 4 + 4
end

local function looks_like_fpdu(tvb, at)
	return tvb(at + 2, 1):bitfield(2, 6) == 1 and tvb(at + 3, 1):bitfield(0, 4) == 4
end

-- Returns whether Wireshark does not show this segment: an FPDU in it has an opcode that Wireshark does not know, or more
-- than it reads, or the capture has cut it.
local function needs_help(tvb, is)
	local at, cut = 0, tvb:len() < tvb:reported_len()

	while at + 4 <= tvb:len() do
		local opcode = tvb(at + 3, 1):bitfield(4, 4)

		if not looks_like_fpdu(tvb, at) then
			return false
		end
		if opcode == IMMEDIATE or opcode == IMMEDIATE_SE or opcode >= SEND_IMMEDIATE or
		   opcode == TERMINATE and is.software or cut then
			return true
		end
		at = at + fpdu_length(tvb(at, 2):uint())
	end
	return false
end

local function add_ddp(tree, tvb, header, tagged)
	tree:add(f.last, tvb(2, 1), tvb(2, 1):bitfield(1) == 1)
	if tagged then
		tree:add(f.stag, tvb(4, 4))
		tree:add(f.offset, tvb(8, 8))
	else
		tree:add(f.queue, tvb(8, 4))
		tree:add(f.message, tvb(12, 4))
		tree:add(f.message_offset, tvb(16, 4))
	end
end

-- Adds what the message has behind its DDP header. Returns what the list of packets says of it.
local function add_body(tree, body, opcode, tvb)
	if opcode == SEND_IMMEDIATE or opcode == SEND_SE_IMMEDIATE then
		tree:add(f.immediate, tvb(4, 4))
		if body then
			tree:add(f.payload, body)
		end
		return string.format(" 0x%08x", tvb(4, 4):uint())
	end
	if not body then
		return ""
	end
	if (opcode == IMMEDIATE or opcode == IMMEDIATE_SE) and body:len() >= 8 then
		tree:add(f.immediate, body(0, 4))
		tree:add(f.write_length, body(4, 4))
		return string.format(" 0x%08x", body(0, 4):uint())
	end
	if opcode == ACKNOWLEDGEMENT and body:len() >= 16 then
		tree:add(f.delivered, body(0, 4))
		tree:add(f.receives, body(4, 4))
		tree:add(f.window, body(8, 8))
		return string.format(" up to %u", body(0, 4):uint())
	end
	if opcode == TERMINATE and body:len() >= 20 then
		tree:add(f.failed_kind, body(4, 1))
		tree:add(f.failed_status, body(5, 1))
		tree:add(f.failed_number, body(8, 4))
		tree:add(f.failed_delivered, body(12, 4))
	end
	return ""
end

-- Has Wireshark dissect the DDP segment, as far as it can. What it does not know is hidden: filters still find it.
local function add_rdmap(tvb, pinfo, tree, ulpdu, header, opcode, whole)
	local wanted = whole and ulpdu or math.min(ulpdu, header - 2 + (HAS_BODY[opcode] or 0))
	local knows = opcode < IMMEDIATE or opcode == 10 or opcode == 11

	if ulpdu < header - 2 + (HAS_BODY[opcode] or 0) or tvb:len() < 2 + wanted then
		return
	end
	if not knows then
		tree = tree:add(dapl, tvb(2, wanted), "as Wireshark dissects it")
		tree:set_hidden(true)
	end
	rdmap:call(tvb(2, wanted):tvb(), pinfo, tree)
end

-- Dissects one FPDU, of which the capture may have only the beginning.
local function dissect_fpdu(tvb, pinfo, tree, ulpdu, software)
	local opcode = tvb(3, 1):bitfield(4, 4)
	local tagged = tvb(2, 1):bitfield(0) == 1
	local header = 2 + (tagged and 14 or 18)
	local there = tvb:len() >= header
	local whole = tvb:len() >= 2 + ulpdu
	local body_end = math.min(2 + ulpdu, tvb:len())
	local body = body_end > header and tvb(header, body_end - header) or nil
	local item = tree:add(dapl, tvb(), "iWARP FPDU: " .. OPCODES[opcode])
	local more = ""

	item:add(f.ulpdu, tvb(0, 2))
	item:add(f.opcode, tvb(3, 1), opcode)
	add_rdmap(tvb, pinfo, tree, ulpdu, header, opcode, whole)
	pinfo.cols.protocol = "DDP/RDMA"
	if there then
		add_ddp(item, tvb, header, tagged)
		if opcode ~= TERMINATE or software then
			more = add_body(item, body, opcode, tvb)
		end
	end
	if tvb:len() >= fpdu_length(ulpdu) then
		item:add(f.crc, tvb(fpdu_length(ulpdu) - 4, 4))
	end
	pinfo.cols.info:set(string.format("%u > %u %s%s [%s DDP segment%s]%s", pinfo.src_port, pinfo.dst_port, OPCODES[opcode],
		more, tvb(2, 1):bitfield(1) == 1 and "last" or "more", tvb(2, 1):bitfield(1) == 1 and "" or "s",
		whole and "" or " [cut by the capture]"))
end

-- Dissects the FPDUs of a segment that the capture has cut.
local function dissect_cut(tvb, pinfo, tree, software)
	local at = 0

	while at + 4 <= tvb:len() and looks_like_fpdu(tvb, at) do
		local ulpdu = tvb(at, 2):uint()
		local length = math.min(fpdu_length(ulpdu), tvb:len() - at)

		dissect_fpdu(tvb(at, length):tvb(), pinfo, tree, ulpdu, software)
		pinfo.cols.info:fence()
		at = at + fpdu_length(ulpdu)
	end
end

local function pdu_length(tvb, pinfo, at)
	return fpdu_length(tvb(at, 2):uint())
end

-- Called first for each segment, since dapl.dissector made this the dissector of the connection. Returns 0 for what
-- Wireshark dissects well.
function mpa.dissector(tvb, pinfo, tree)
	if note_handshake(tvb, pinfo) then
		return 0
	end
	local is = connection_of(pinfo)

	if not is or not is.established or is.established >= pinfo.number or not needs_help(tvb, is) then
		return 0
	end
	if tvb:len() < tvb:reported_len() then
		dissect_cut(tvb, pinfo, tree, is.software)
	else
		dissect_tcp_pdus(tvb, tree, 4, pdu_length, function(pdu, info, to)
			dissect_fpdu(pdu, info, to, pdu(0, 2):uint(), is.software)
			return pdu:len()
		end)
	end
	return tvb:len()
end

-- --- handshakes of MPA ------------------------------------------------------------------------------------------

local function add_trailer(tree, data)
	tree:add(f.trailer, data(0, 1))
	tree:add(f.features, data(2, 2))
	tree:add(f.max_ulpdu, data(4, 4))
	tree:add(f.qpn, data(8, 4))
	tree:add(f.qkey, data(12, 4))
	tree:add(f.udp_port, data(16, 2))
	tree:add(f.token, data(20, 16))
end

-- Shows the bits that RFC 5044 reserves, and the data that revision 2 (RFC 6581) puts in front of the private data.
local function add_handshake(tree, frame, reply)
	local flags, revision = frame(16, 1), frame(17, 1):uint()
	local software = flags:bitfield(reply and 6 or 7) == 1
	local enhanced = revision >= 2 and flags:bitfield(3) == 1
	local at, size = 20, frame:len()

	if not software and not enhanced then
		return
	end
	local item = tree:add(dapl, frame, reply and "MPA Reply, further fields" or "MPA Request, further fields")

	item:add(f.enhanced, flags)
	item:add(reply and f.reply or f.request, flags)
	if software then
		item:add(reply and flags:bitfield(2) == 1 and f.refused or f.datagrams, flags)
	end
	if enhanced and size >= at + 4 then
		item:add(f.peer_to_peer, frame(at, 2))
		item:add(f.rtr_send, frame(at, 2))
		item:add(f.ird, frame(at, 2))
		item:add(f.rtr_write, frame(at + 2, 2))
		item:add(f.rtr_read, frame(at + 2, 2))
		item:add(f.ord, frame(at + 2, 2))
		at = at + 4
	end
	if software and reply and size >= at + 36 and frame(at, 1):uint() == 1 and frame(at + 1, 1):uint() == 36 then
		add_trailer(item, frame(at, 36))
		at = at + 36
	end
	if size > at then
		item:add(f.private, frame(at, size - at))
	end
end

-- Called after all other dissectors. A heuristic dissector would come too late for segments: Wireshark tries first the
-- one that succeeded last.
function dapl.dissector(tvb, pinfo, tree)
	if tcp_syn() and tcp_syn().value then
		pinfo.conversation = mpa
		return
	end
	local request, reply = mpa_request(), mpa_reply()

	if request and request.range:len() >= 20 then
		add_handshake(tree, request.range, false)
	elseif reply and reply.range:len() >= 20 then
		add_handshake(tree, reply.range, true)
	end
end

-- --- datagrams between software devices -------------------------------------------------------------------------

local function dissect_datagram(tvb, pinfo, tree)
	if tvb:len() < 24 or tvb(0, 4):uint() ~= 0x44504c01 then
		return false
	end
	local item = tree:add(dapl, tvb(), "DAT datagram")
	local immediate = tvb(16, 4):bitfield(31) == 1

	item:add(f.qpn, tvb(4, 4))
	item:add(f.source_qpn, tvb(8, 4))
	item:add(f.qkey, tvb(12, 4))
	item:add(f.solicited, tvb(16, 4))
	if immediate then
		item:add(f.immediate, tvb(20, 4))
	end
	if tvb:len() > 24 then
		item:add(f.payload, tvb(24))
	end
	pinfo.cols.protocol = "DAT"
	pinfo.cols.info:set(string.format("Datagram QP=0x%06x from QP=0x%06x, %u bytes%s", tvb(4, 4):uint(), tvb(8, 4):uint(),
		tvb:reported_len() - 24, immediate and string.format(", immediate 0x%08x", tvb(20, 4):uint()) or ""))
	return true
end

-- --- RoCE -------------------------------------------------------------------------------------------------------

local udp_ports = DissectorTable.get("udp.port")
local rroce = udp_ports:get_dissector(4791)
local roce = Proto("dapl_roce", "RoCE packets that Wireshark does not know")

local function add_extended(item, tvb, opcode)
	if opcode == FLUSH and tvb:len() >= 32 then
		item:add(f.persistent, tvb(12, 4))
		item:add(f.visible, tvb(12, 4))
		item:add(f.selectivity, tvb(12, 4))
		item:add(f.address, tvb(16, 8))
		item:add(f.r_key, tvb(24, 4))
		item:add(f.length, tvb(28, 4))
	elseif opcode == ATOMIC_WRITE and tvb:len() >= 36 then
		item:add(f.address, tvb(12, 8))
		item:add(f.r_key, tvb(20, 4))
		item:add(f.length, tvb(24, 4))
		item:add(f.value, tvb(28, 8))
	end
end

local function dissect_bth(tvb, pinfo, tree, opcode)
	local item = tree:add(dapl, tvb(), BTH_OPCODES[opcode])

	item:add(f.bth_opcode, tvb(0, 1))
	item:add(f.pkey, tvb(2, 2))
	item:add(f.becn, tvb(4, 1))
	item:add(f.qpn, tvb(5, 3))
	item:add(f.psn, tvb(9, 3))
	add_extended(item, tvb, opcode)
	if tvb:len() == tvb:reported_len() and tvb:len() >= 16 then
		item:add(f.icrc, tvb(tvb:len() - 4, 4))
	end
	pinfo.cols.protocol = "RRoCE"
	pinfo.cols.info:set(string.format("%s QP=0x%06x", BTH_OPCODES[opcode], tvb(5, 3):uint()))
end

function roce.dissector(tvb, pinfo, tree)
	local opcode = tvb:len() >= 12 and tvb(0, 1):uint()

	if opcode and BTH_OPCODES[opcode] then
		dissect_bth(tvb, pinfo, tree, opcode)
		return tvb:len()
	end
	local done = rroce:call(tvb, pinfo, tree)

	-- Wireshark dissects the headers of a packet that is cut, but does not tell the operation in the list of packets.
	if opcode and tvb:len() < tvb:reported_len() and bth_opcode() then
		pinfo.cols.info:clear_fence()
		pinfo.cols.info:set(string.format("%s QP=0x%06x [cut by the capture]", bth_opcode().display, tvb(5, 3):uint()))
	end
	return done
end

dapl:register_heuristic("udp", dissect_datagram)
register_postdissector(dapl)
udp_ports:set(4791, roce)
